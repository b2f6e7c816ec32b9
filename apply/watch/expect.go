// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
)

// Expected describes the state that an item expects of an object. This is the state after the item's last write.
type Expected struct {
	Object Object
	// UID is the UID of the object. If it is empty, every UID matches.
	UID types.UID
	// Key is the ownership key of the object after the item's last write. If Key is empty, because the API server does
	// not track the fields of the kind, only a deletion, a replacement or a change of the owner label counts as drift.
	Key ownership.Key
	// Finishes means that the deletion of the object is no drift, because the object disappears after its work.
	Finishes bool
	// ResourceVersion is the resource version of the object after the item's last write. The Watcher ignores older
	// states of the object. If ResourceVersion is empty, for example because the inventory was loaded from storage, the
	// Watcher compares every state.
	ResourceVersion string
}

// expectation contains the state that an item expects of an object. It also contains the drift that was last reported
// for the object.
type expectation struct {
	plan     *plan
	resource unique.Handle[schema.GroupVersionResource]
	name     name
	uid      types.UID
	key      ownership.Key
	version  string
	finishes bool
	reported uint64 // the hash of the last reported drift, or 0
}

// object returns the object of the expectation.
func (e *expectation) object() Object { return Object{e.resource.Value(), e.name.full()} }

// share makes the expectation and the stored object use the same memory for equal texts.
func (e *expectation) share(r *reduced) {
	e.name = r.name
	e.uid, e.key, e.version = shared(e.uid, r.uid), shared(e.key, r.key), shared(e.version, r.version)
}

// shared returns the stored text if both texts are equal. Otherwise it returns the first text.
func shared[T ~string](text, stored T) T {
	if text == stored {
		return stored
	}
	return text
}

// expectations contains the expectations for the objects of one resource.
type expectations map[name]*expectation

// plan contains the expected states of all objects of an item.
type plan struct {
	item    types.UID
	held    bool
	objects []expectation
}

// Hold suspends the detection of drift for an item. Call it before the item writes its objects, because the watch also
// reports intermediate states. The next call of Expect for the item resumes the detection, and reports the drift that
// occurred in the meantime.
func (w *Watcher) Hold(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.plans[item]; p != nil {
		p.held = true
	}
}

// Expect sets the objects that an item expects, and compares them at once with the known state. It therefore also
// detects changes that were made before the watch began. It calls the subscribers before it returns. Objects whose
// resource is not watched yet are compared as soon as the resource is watched.
func (w *Watcher) Expect(item types.UID, objects []Expected) {
	w.mu.Lock()
	before, p := w.plans[item], &plan{item: item, objects: make([]expectation, len(objects))}
	w.plans[item] = p
	for i, o := range objects {
		e := &p.objects[i]
		*e = expectation{
			plan: p, resource: unique.Make(o.Object.Resource), name: nameOf(o.Object.NamespacedName), uid: o.UID, key: o.Key, version: o.ResourceVersion,
			finishes: o.Finishes,
		}
		w.expect(e, before)
	}
	w.drop(before)
	var events []Event
	for i := range p.objects {
		e := &p.objects[i]
		events = w.judge(events, e.resource.Value(), e.name, false)
	}
	w.collect()
	w.mu.Unlock()
	w.emit(events)
}

// expect adds an expectation, or replaces the expectation for the same object. The parameter `before` contains the
// previous expectations of the item. It may be nil.
func (w *Watcher) expect(e *expectation, before *plan) {
	gvr := e.resource.Value()
	all := w.expected[gvr]
	if all == nil {
		all = expectations{}
		w.expected[gvr] = all
	}
	if old := all[e.name]; old != nil && old.plan == before && old.isSame(e) {
		e.reported = old.reported // so that the same state is not reported twice
	}
	all[e.name] = e
}

// Forget removes the objects that Expect has set for an item. Call it when the item is deleted or another process is
// responsible for the item.
func (w *Watcher) Forget(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(w.plans[item])
	delete(w.plans, item)
	w.forgetKnown(item)
	w.collect()
}

// drop removes the expectations of an item. If a newer expectation for the same object has replaced one of them, the
// newer expectation stays. The argument may be nil.
func (w *Watcher) drop(p *plan) {
	if p == nil {
		return
	}
	for i := range p.objects {
		e := &p.objects[i]
		gvr := e.resource.Value()
		if w.expected[gvr][e.name] == e {
			delete(w.expected[gvr], e.name)
		}
		if len(w.expected[gvr]) == 0 {
			delete(w.expected, gvr)
		}
	}
}

// judgeAll compares all expectations for a place with the known state. It is called after a watch has received a
// complete list.
func (w *Watcher) judgeAll(p place) []Event {
	var events []Event
	for id := range w.expected[p.gvr] {
		if p.contains(id) {
			events = w.judge(events, p.gvr, id, false)
		}
	}
	return events
}

// rewound removes the resource versions from the expectations because the target was restored from a backup. The
// resource versions of the target start again at lower values, so a comparison with an earlier version no longer shows
// which state is older.
func (w *Watcher) rewound(p place) {
	for id, e := range w.expected[p.gvr] {
		if p.contains(id) {
			e.version = ""
		}
	}
}

// judge compares an object with its expectation, and appends an event if it finds drift that was not reported yet. The
// argument `deleted` means that the watch has just reported a deletion of the object.
func (w *Watcher) judge(events []Event, gvr schema.GroupVersionResource, id name, deleted bool) []Event {
	e := w.expected[gvr][id]
	if e == nil || e.plan.held {
		return events
	}
	s := w.covering(gvr, id.namespace.Value())
	if s == nil || !s.synced {
		return events
	}
	r := s.objects[id]
	if r != nil {
		e.share(r)
	}
	switch {
	case r != nil && version.Older(r.version, e.version):
		return events // the state r is older than the item's own write
	case r == nil && !deleted && version.Older(s.version, e.version):
		return events // the watch has not seen the item's write yet
	}
	event := Event{Item: e.plan.item, Object: e.object(), UID: e.uid, What: verdict(e, r)}
	if !e.isNews(event.What, r) {
		return events
	}
	if r != nil {
		seen := r.seen()
		event.By, event.Finalizers = seen.By, seen.Finalizers
	}
	return append(events, event)
}

// isSame reports whether two expectations come from the same write by the item. After another write, the same drift is
// reported again, even if the watch has not seen the corrected state in between. The other writer may have repeated its
// change before the watch could see the corrected state.
func (e *expectation) isSame(now *expectation) bool {
	return e.uid == now.uid && e.key == now.key && (now.version == "" || now.version == e.version)
}

// isNews reports whether a drift was not reported before, and records it as reported.
func (e *expectation) isNews(what What, r *reduced) bool {
	var state uint64
	if what != "" {
		text := string(what)
		if r != nil {
			text += " " + string(r.uid) + " " + r.item.Value() + " " + string(r.key)
		}
		state = keyOf(text)
	}
	if state == e.reported {
		return false
	}
	e.reported = state
	return what != ""
}

// verdict returns how an object differs from the expectation, or "" if it does not differ.
func verdict(e *expectation, r *reduced) What {
	switch {
	case e.finishes && (r == nil || r.uid == e.uid && r.deleting):
		return ""
	case r == nil:
		return Gone
	case e.uid != "" && r.uid != e.uid:
		return Replaced
	case r.owner() != e.plan.item:
		return Relabelled
	case r.deleting:
		return Deleting
	case e.key == "" || r.key == e.key:
		return ""
	case r.key == "":
		return Wiped
	default:
		return Changed
	}
}
