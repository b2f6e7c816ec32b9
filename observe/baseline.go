// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"iter"
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
)

// BaselineObject describes the state of an object after the item's last write. A Watcher compares later states with
// this state.
type BaselineObject struct {
	Object Object
	// UID is the UID of the object. If it is empty, every UID matches.
	UID types.UID
	// Fingerprint is the fingerprint of the object after the item's last write. If it is empty, because the API server
	// does not track the fields of the kind, only a deletion, a replacement or a change of the owner label counts as
	// drift.
	Fingerprint ownership.Fingerprint
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
	baseline *baseline
	resource unique.Handle[schema.GroupVersionResource]
	name     name
	uid      types.UID
	key      ownership.Fingerprint
	version  string
	finishes bool
	reported uint64 // the hash of the last reported drift, or 0
}

// object returns the object of the expectation.
func (e *expectation) object() Object { return Object{e.resource.Value(), e.name.toNamespacedName()} }

// shareMemory makes the expectation and the stored object use the same memory for equal texts.
func (e *expectation) shareMemory(r *storedObject) {
	e.name = r.name
	e.uid, e.key, e.version = reuse(e.uid, r.uid), reuse(e.key, r.key), reuse(e.version, r.version)
}

// reuse returns the stored text if both texts are equal. Otherwise it returns the first text.
func reuse[T ~string](text, stored T) T {
	if text == stored {
		return stored
	}
	return text
}

// baseline contains the expected states of all objects of an item.
type baseline struct {
	item      types.UID
	suspended bool
	objects   []expectation
}

// baselines contains the baselines of all items. The lock of the Watcher guards it.
type baselines struct {
	items   map[types.UID]*baseline
	objects map[schema.GroupVersionResource]map[name]*expectation
}

// find returns the expectation for an object, or nil.
func (b *baselines) find(gvr schema.GroupVersionResource, id name) *expectation {
	return b.objects[gvr][id]
}

// add adds an expectation, or replaces the expectation for the same object. The previous expectations of the item are
// in before, which may be nil.
func (b *baselines) add(e *expectation, before *baseline) {
	gvr := e.resource.Value()
	if b.objects[gvr] == nil {
		b.objects[gvr] = map[name]*expectation{}
	}
	if old := b.find(gvr, e.name); old != nil && old.baseline == before && old.isSame(e) {
		e.reported = old.reported // so that the same state is not reported twice
	}
	b.objects[gvr][e.name] = e
}

// remove removes the expectations of an item. If a newer expectation for the same object has replaced one of them, the
// newer expectation stays. The argument may be nil.
func (b *baselines) remove(old *baseline) {
	if old == nil {
		return
	}
	for i := range old.objects {
		e := &old.objects[i]
		gvr := e.resource.Value()
		if b.find(gvr, e.name) == e {
			delete(b.objects[gvr], e.name)
		}
		if len(b.objects[gvr]) == 0 {
			delete(b.objects, gvr)
		}
	}
}

// listIn iterates over the expectations for the objects in a scope.
func (b *baselines) listIn(within scope) iter.Seq[*expectation] {
	return func(yield func(*expectation) bool) {
		for id, e := range b.objects[within.resource] {
			if within.contains(id) && !yield(e) {
				return
			}
		}
	}
}

// hasAny reports whether an item expects an object in a scope.
func (b *baselines) hasAny(within scope) bool {
	for range b.listIn(within) {
		return true
	}
	return false
}

// listItems returns the items that expect an object in a scope.
func (b *baselines) listItems(within scope) sets.Set[types.UID] {
	items := sets.New[types.UID]()
	for e := range b.listIn(within) {
		items.Insert(e.baseline.item)
	}
	return items
}

// resetVersions removes the resource versions from the expectations because the target was restored from a backup. The
// resource versions of the target start again at lower values, so a comparison with an earlier version no longer shows
// which state is older.
func (b *baselines) resetVersions(within scope) {
	for e := range b.listIn(within) {
		e.version = ""
	}
}

// isSuspended reports whether drift detection is suspended for an item.
func (b *baselines) isSuspended(item types.UID) bool {
	found := b.items[item]
	return found != nil && found.suspended
}

// Suspend suspends the detection of drift for an item. Call it before the item writes its objects, because the watch
// also reports intermediate states. The next call of SetBaseline for the item resumes the detection, and reports the
// drift that occurred in the meantime.
func (w *Watcher) Suspend(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.baselines.items[item]; b != nil {
		b.suspended = true
	}
}

// SetBaseline sets the states of the objects of an item after its last write, and compares them at once with the known
// states. It therefore also detects changes that were made before the watch began. It calls the functions that OnDrift
// registered before it returns. Objects whose resource is not watched yet are compared as soon as the resource is
// watched.
func (w *Watcher) SetBaseline(item types.UID, objects []BaselineObject) {
	w.mu.Lock()
	before, now := w.baselines.items[item], &baseline{item: item, objects: make([]expectation, len(objects))}
	w.baselines.items[item] = now
	for i, o := range objects {
		e := &now.objects[i]
		*e = expectation{
			baseline: now, resource: unique.Make(o.Object.Resource), name: newName(o.Object.NamespacedName), uid: o.UID, key: o.Fingerprint,
			version: o.ResourceVersion, finishes: o.Finishes,
		}
		w.baselines.add(e, before)
	}
	w.baselines.remove(before)
	var drifts []Drift
	for i := range now.objects {
		e := &now.objects[i]
		drifts = w.compare(drifts, e.resource.Value(), e.name, false)
	}
	w.stopIdle()
	w.mu.Unlock()
	w.notifyDrift(drifts)
}

// Forget removes the objects that SetBaseline has set for an item. Call it when the item is deleted or another process
// is responsible for the item.
func (w *Watcher) Forget(item types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.baselines.remove(w.baselines.items[item])
	delete(w.baselines.items, item)
	w.inventories.remove(item)
	w.stopIdle()
}

// compareAll compares all expectations for a scope with the known states. It is called after a watch has received a
// complete list. The caller holds the lock.
func (w *Watcher) compareAll(within scope) []Drift {
	var drifts []Drift
	for e := range w.baselines.listIn(within) {
		drifts = w.compare(drifts, within.resource, e.name, false)
	}
	return drifts
}

// compare compares an object with its expectation, and appends a Drift if it finds one that was not reported yet. If
// deleted is true, the watch has just reported a deletion of the object. The caller holds the lock.
func (w *Watcher) compare(drifts []Drift, gvr schema.GroupVersionResource, id name, deleted bool) []Drift {
	e := w.baselines.find(gvr, id)
	if e == nil || e.baseline.suspended {
		return drifts
	}
	s := w.findStore(gvr, id.namespace.Value())
	if s == nil || !s.synced {
		return drifts
	}
	r := s.objects[id]
	if r != nil {
		e.shareMemory(r)
	}
	switch {
	case r != nil && version.IsOlder(r.version, e.version):
		return drifts // the state r is older than the item's own write
	case r == nil && !deleted && version.IsOlder(s.version, e.version):
		return drifts // the watch has not seen the item's write yet
	}
	drift := Drift{Item: e.baseline.item, Object: e.object(), UID: e.uid, Reason: e.getDriftReason(r)}
	if !e.recordReported(drift.Reason, r) {
		return drifts
	}
	if r != nil {
		state := r.toState()
		drift.Changes, drift.Finalizers = state.Changes, state.Finalizers
	}
	return append(drifts, drift)
}

// isSame reports whether two expectations come from the same write by the item. After another write, the same drift is
// reported again, even if the watch has not seen the corrected state in between. The other writer may have repeated its
// change before the watch could see the corrected state.
func (e *expectation) isSame(now *expectation) bool {
	return e.uid == now.uid && e.key == now.key && (now.version == "" || now.version == e.version)
}

// recordReported records a drift as reported. It returns true if there is a drift that was not reported before.
func (e *expectation) recordReported(reason DriftReason, r *storedObject) bool {
	var state uint64
	if reason != "" {
		text := string(reason)
		if r != nil {
			text += " " + string(r.uid) + " " + r.item.Value() + " " + string(r.key)
		}
		state = hashKey(text)
	}
	if state == e.reported {
		return false
	}
	e.reported = state
	return reason != ""
}

// getDriftReason returns how an object differs from the expectation, or "" if it does not differ.
func (e *expectation) getDriftReason(r *storedObject) DriftReason {
	switch {
	case e.finishes && (r == nil || r.uid == e.uid && r.deleting):
		return ""
	case r == nil:
		return DriftReasonDeleted
	case e.uid != "" && r.uid != e.uid:
		return DriftReasonReplaced
	case r.getItem() != e.baseline.item:
		return DriftReasonRelabelled
	case r.deleting:
		return DriftReasonDeleting
	case e.key == "" || r.key == e.key:
		return ""
	case r.key == "":
		return DriftReasonWiped
	default:
		return DriftReasonChanged
	}
}
