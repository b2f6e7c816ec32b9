// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
)

// Expected describes an object as its item left it.
type Expected struct {
	Object Object
	// UID is the UID of the object. If it is empty, any UID is right.
	UID types.UID
	// Key is the key of the answer to the item's last write. If it is empty, the kind is not tracked, and only a
	// deletion and a changed label count as drift.
	Key ownership.Key
	// ResourceVersion is that of the same answer. Older states that a watch has seen are not judged. If it is empty,
	// as in an inventory that was read back, every state is judged.
	ResourceVersion string
}

// expectation is an Expected in memory, with the state that was reported last.
type expectation struct {
	item     types.UID
	uid      types.UID
	key      ownership.Key
	version  string
	reported string
}

// expectations are the expectations for one resource.
type expectations map[types.NamespacedName]*expectation

// plan is what an item expects.
type plan struct {
	held    bool
	objects map[schema.GroupVersionResource][]types.NamespacedName
}

// Hold stops judging the objects of an item until Expect is called for it. While the item writes them, the watch sees
// intermediate states. Expect judges what happened meanwhile.
func (w *Watcher) Hold(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.plans[item]; p != nil {
		p.held = true
	}
}

// Expect replaces what is expected for an item and judges it at once, including changes from before the watch began.
// Subscribers are called before it returns. Objects whose resource is not watched are judged as soon as it is.
func (w *Watcher) Expect(item types.UID, objects []Expected) {
	w.mu.Lock()
	before := w.drop(item)
	p := &plan{objects: map[schema.GroupVersionResource][]types.NamespacedName{}}
	var events []Event
	for _, o := range objects {
		gvr := o.Object.Resource
		if w.expected[gvr] == nil {
			w.expected[gvr] = expectations{}
		}
		e := &expectation{item: item, uid: o.UID, key: o.Key, version: o.ResourceVersion}
		if old := before[o.Object]; old != nil && old.isSame(e) {
			e.reported = old.reported // do not report the same state twice
		}
		w.expected[gvr][o.Object.NamespacedName] = e
		p.objects[gvr] = append(p.objects[gvr], o.Object.NamespacedName)
	}
	w.plans[item] = p
	for gvr, ids := range p.objects {
		for _, id := range ids {
			events = w.judge(events, Object{gvr, id}, false)
		}
	}
	w.collect()
	w.mu.Unlock()
	w.emit(events)
}

// Forget ends what is expected for an item, because the item is deleted or no longer the caller's.
func (w *Watcher) Forget(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(item)
	w.collect()
}

// drop removes an item's plan and returns what it expected.
func (w *Watcher) drop(item types.UID) map[Object]*expectation {
	p := w.plans[item]
	if p == nil {
		return nil
	}
	delete(w.plans, item)
	old := map[Object]*expectation{}
	for gvr, ids := range p.objects {
		for _, id := range ids {
			if e := w.expected[gvr][id]; e != nil && e.item == item {
				old[Object{gvr, id}] = e
				delete(w.expected[gvr], id)
			}
		}
		if len(w.expected[gvr]) == 0 {
			delete(w.expected, gvr)
		}
	}
	return old
}

// judgeAll judges everything that is expected of a resource, because a watch received its first or a new list.
func (w *Watcher) judgeAll(gvr schema.GroupVersionResource, namespace string) []Event {
	var events []Event
	for id := range maps.Keys(w.expected[gvr]) {
		if namespace == "" || id.Namespace == namespace {
			events = w.judge(events, Object{gvr, id}, false)
		}
	}
	return events
}

// rewound handles a target that was restored from a backup and restarts its versions, so that they no longer show
// what is old.
func (w *Watcher) rewound(p place) {
	for id, e := range w.expected[p.gvr] {
		if p.namespace == "" || id.Namespace == p.namespace {
			e.version = ""
		}
	}
}

// judge compares what is expected with what is seen. deleted means that the watch has just reported that the object
// left it.
func (w *Watcher) judge(events []Event, o Object, deleted bool) []Event {
	e := w.expected[o.Resource][o.NamespacedName]
	if e == nil || w.plans[e.item] == nil || w.plans[e.item].held {
		return events
	}
	s := w.covering(o.Resource, o.Namespace)
	if s == nil || !s.synced {
		return events
	}
	r := s.objects[o.NamespacedName]
	switch {
	case r != nil && version.Older(r.version, e.version):
		return events // the answer to the item's own write is newer
	case r == nil && !deleted && version.Older(s.version, e.version):
		return events // the watch has not seen it yet
	}
	event := Event{Item: e.item, Object: o, UID: e.uid, What: verdict(e, r)}
	if !e.isNews(event.What, r) {
		return events
	}
	if r != nil {
		event.By = r.seen().By
	}
	return append(events, event)
}

// isSame reports whether nothing was corrected between two expectations. After a write the same drift is a new one,
// even if the state in between was never seen, because another writer is often faster than the watch.
func (e *expectation) isSame(now *expectation) bool {
	return e.uid == now.uid && e.key == now.key && (now.version == "" || now.version == e.version)
}

// isNews reports whether a state is a drift that was not reported yet, and records it.
func (e *expectation) isNews(what What, r *reduced) bool {
	state := string(what)
	if what != "" && r != nil {
		state += " " + string(r.uid) + " " + r.item.Value() + " " + string(r.key)
	}
	if state == e.reported {
		return false
	}
	e.reported = state
	return what != ""
}

// verdict returns the difference, or "" if everything is as expected.
func verdict(e *expectation, r *reduced) What {
	switch {
	case r == nil:
		return Gone
	case e.uid != "" && r.uid != e.uid:
		return Replaced
	case r.owner() != e.item:
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
