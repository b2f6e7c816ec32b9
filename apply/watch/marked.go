// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
)

// Marked is a watched object that carries the owner label and the owner annotations of an item.
type Marked struct {
	Object Object
	UID    types.UID
	// ResourceVersion is the version that the watch reported last.
	ResourceVersion string
}

// known contains what an item knows about the objects with its marks.
type known struct {
	item    types.UID
	uids    []uint64             // the sorted hashes of the UIDs in the inventory
	ignored map[types.UID]string // the versions of other objects for which nothing has to be done
	tell    bool                 // no run is in progress, so that unknown objects are reported
}

// Know sets the UIDs of the objects in the inventory of an item, and reports whether a watch has reported another
// object with the marks of the item. If the parameter `tell` is true, the functions that FollowUnknown registered are
// called from now on when a watch reports such an object. Pass false at the beginning of a run, because the run creates
// objects. The map `ignored` contains objects to ignore until a newer version exists. If the version in the map is
// empty, this is a version that is newer than the one that the watch has reported last. After an interruption of a
// watch, no object is ignored, because the target may have been restored from a backup. Objects that are being deleted
// or stay in the cluster on purpose are ignored, too. Forget removes the item.
func (w *Watcher) Know(owner ownership.Owner, inventory []types.UID, ignored map[types.UID]string, tell bool) (isUnknown bool) {
	now := &known{item: owner.UID, uids: make([]uint64, 0, len(inventory)), ignored: ignored, tell: tell}
	for _, uid := range inventory {
		now.uids = append(now.uids, keyOf(string(uid)))
	}
	slices.Sort(now.uids)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range markKeys(owner) {
		w.known[key] = now
		for r := range w.marked(key) {
			if version, found := now.ignored[r.uid]; found && version == "" {
				now.ignored[r.uid] = r.version
			}
			isUnknown = isUnknown || now.isUnknown(r)
		}
	}
	return isUnknown
}

// Marks reports for which of the given UIDs a watch contains an object with the marks of an item, or of an earlier item
// with the same name.
func (w *Watcher) Marks(owner ownership.Owner, uids map[types.UID]string) map[types.UID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[types.UID]bool{}
	if len(uids) == 0 {
		return out
	}
	for _, key := range markKeys(owner) {
		for r := range w.marked(key) {
			if _, found := uids[r.uid]; found {
				out[r.uid] = true
			}
		}
	}
	return out
}

// Unknown returns the watched objects that carry the marks of an item, or of an earlier item with the same name, and that
// Know did not name. The result has at most the given number of objects, in a fixed order.
func (w *Watcher) Unknown(owner ownership.Owner, limit int) []Marked {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Marked
	for _, key := range markKeys(owner) {
		for r, s := range w.marked(key) {
			if now := w.known[key]; now != nil && now.isUnknown(r) {
				out = append(out, Marked{Object{s.place.gvr, r.full()}, r.uid, r.version})
			}
		}
	}
	slices.SortFunc(out, func(a, b Marked) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.UID, b.UID))
	})
	out = slices.CompactFunc(out, func(a, b Marked) bool { return a.UID == b.UID })
	return out[:min(len(out), limit)]
}

// marked iterates over the stored objects with a key. The caller holds the lock.
func (w *Watcher) marked(key uint64) func(func(*reduced, *stream) bool) {
	return func(yield func(*reduced, *stream) bool) {
		for _, s := range w.streams {
			for _, r := range s.index.objects[key] {
				if r.mark == key && !yield(r, s) {
					return
				}
			}
		}
	}
}

// has reports whether the inventory of the item contains a UID.
func (k *known) has(uid types.UID) bool {
	_, found := slices.BinarySearch(k.uids, keyOf(string(uid)))
	return found
}

// isUnknown reports whether the item does not know an object that it may have to remove.
func (k *known) isUnknown(r *reduced) bool {
	seen, isIgnored := k.ignored[r.uid]
	switch {
	case r.deleting, r.stays, k.has(r.uid):
		return false
	case isIgnored:
		return seen != "" && version.Older(seen, r.version)
	}
	return true
}

// unknownTo returns the item to which an object is unknown, or "". While the item writes its objects, none is. The caller
// holds the lock.
func (w *Watcher) unknownTo(r *reduced) types.UID {
	if k := w.known[r.mark]; k != nil && k.isUnknown(r) {
		return w.listening(k)
	}
	return ""
}

// ignoredBy returns the item that ignores an object, or "". If such an object is gone, the item may have to correct what
// it reports. The caller holds the lock.
func (w *Watcher) ignoredBy(r *reduced) types.UID {
	if k := w.known[r.mark]; k != nil && k.ignored[r.uid] != "" {
		return w.listening(k)
	}
	return ""
}

// listening returns the item, or "" while it writes its objects. The caller holds the lock.
func (w *Watcher) listening(k *known) types.UID {
	if p := w.plans[k.item]; !k.tell || p != nil && p.held {
		return ""
	}
	return k.item
}

// replaced returns the items that have to be told about a new list of objects. If the list is not the first one of its
// stream, the target may have been restored from a backup. Objects that were removed may then exist again, with an older
// version, so no object is ignored any more. The caller holds the lock.
func (w *Watcher) replaced(before, now map[name]*reduced, isFirst bool) (items []types.UID) {
	for id, r := range before {
		if now[id] == nil {
			items = append(items, w.ignoredBy(r))
		}
	}
	if !isFirst {
		for _, k := range w.known {
			clear(k.ignored)
		}
	}
	for _, r := range now {
		items = append(items, w.unknownTo(r))
	}
	return items
}

// FollowUnknown registers a function that is called with the UID of an item if a watch reports an object with the marks
// of the item that the item does not know (see Know). f must not block. The returned function ends the registration.
func (w *Watcher) FollowUnknown(f func(item types.UID)) (stop func()) {
	return register(w, w.unknown, f)
}

// tellUnknown calls the functions that FollowUnknown registered. It does not hold the lock during the calls.
func (w *Watcher) tellUnknown(items ...types.UID) {
	w.mu.Lock()
	calls := slices.Collect(maps.Values(w.unknown))
	w.mu.Unlock()
	for item := range sets.New(items...).Delete("") {
		for _, f := range calls {
			f(item)
		}
	}
}

// forgetKnown removes what an item knows. The caller holds the lock.
func (w *Watcher) forgetKnown(item types.UID) {
	maps.DeleteFunc(w.known, func(_ uint64, k *known) bool { return k.item == item })
}

// markOf returns the key of the name of the item that an object belongs to, or 0.
func markOf(m metav1.Object) uint64 {
	owner, found := ownership.OwnerOf(m)
	if !found || owner.Name == "" {
		return 0
	}
	return nameKey(owner)
}

// markKeys returns the keys of the name of an item.
func markKeys(owner ownership.Owner) []uint64 { return keysOf(owner)[1:] }

// staysOnPurpose reports whether an object stays in the cluster when its item does not want it any more.
func staysOnPurpose(m metav1.Object) bool {
	return m.GetAnnotations()[ownership.AnnotationPolicy] != ""
}
