// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// inventory contains what an item knows about the objects with its marks.
type inventory struct {
	item    types.UID
	uids    []uint64             // the sorted hashes of the UIDs in the inventory
	ignored map[types.UID]string // the versions of other objects for which nothing has to be done
	report  bool                 // no run is in progress, so that unknown objects are reported
}

// inventories contains the inventories of all items. The lock of the Watcher guards it.
type inventories struct {
	byName    map[uint64]*inventory // by the key of the name of the item, see hashName
	baselines *baselines            // say whether an item writes its objects at the moment
}

// SetInventory sets the UIDs of the objects in the inventory of an item, and reports whether a watch has reported
// another object with the marks of the item. If report is true, the functions that OnUnknownObject registered are
// called from now on when a watch reports such an object. Pass false at the beginning of a run, because the run creates
// objects. The map `ignored` contains objects to ignore until a newer version exists. If the version in the map is
// empty, this is a version that is newer than the one that the watch has reported last. After an interruption of a
// watch, no object is ignored, because the target may have been restored from a backup. Objects that are being deleted
// or stay in the cluster on purpose are ignored, too. Forget removes the item.
func (w *Watcher) SetInventory(owner ownership.Owner, uids []types.UID, ignored map[types.UID]string, report bool) (hasUnknown bool) {
	now := &inventory{item: owner.UID, uids: make([]uint64, 0, len(uids)), ignored: ignored, report: report}
	for _, uid := range uids {
		now.uids = append(now.uids, hashKey(string(uid)))
	}
	slices.Sort(now.uids)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range listMarkKeys(owner) {
		w.inventories.byName[key] = now
		for r := range w.listMarked(key) {
			if version, found := now.ignored[r.uid]; found && version == "" {
				now.ignored[r.uid] = r.version
			}
			hasUnknown = hasUnknown || now.isMissing(r)
		}
	}
	return hasUnknown
}

// FindMarked returns those keys of uids for which a watch contains an object with the owner label and the owner
// annotations of an item, or of an earlier item with the same name. It ignores the values of uids.
func (w *Watcher) FindMarked(owner ownership.Owner, uids map[types.UID]string) map[types.UID]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[types.UID]bool{}
	if len(uids) == 0 {
		return out
	}
	for _, key := range listMarkKeys(owner) {
		for r := range w.listMarked(key) {
			if _, found := uids[r.uid]; found {
				out[r.uid] = true
			}
		}
	}
	return out
}

// ListUnknown returns the watched objects that the inventory of an item does not contain (see SetInventory), although
// they carry the owner label and the owner annotations (the marks) of the item or of an earlier item with the same
// name. The result has at most the given number of objects, in a fixed order.
func (w *Watcher) ListUnknown(owner ownership.Owner, limit int) []Marked {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Marked
	for _, key := range listMarkKeys(owner) {
		for r, s := range w.listMarked(key) {
			if now := w.inventories.byName[key]; now != nil && now.isMissing(r) {
				out = append(out, Marked{Object{s.scope.resource, r.toNamespacedName()}, r.uid, r.version})
			}
		}
	}
	slices.SortFunc(out, func(a, b Marked) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.UID, b.UID))
	})
	out = slices.CompactFunc(out, func(a, b Marked) bool { return a.UID == b.UID })
	return out[:min(len(out), limit)]
}

// listMarked iterates over the stored objects with a key. The caller holds the lock.
func (w *Watcher) listMarked(key uint64) iter.Seq2[*storedObject, *store] {
	return func(yield func(*storedObject, *store) bool) {
		for _, s := range w.stores {
			for _, r := range s.index.objects[key] {
				if r.mark == key && !yield(r, s) {
					return
				}
			}
		}
	}
}

// contains reports whether the inventory contains a UID.
func (i *inventory) contains(uid types.UID) bool {
	_, found := slices.BinarySearch(i.uids, hashKey(string(uid)))
	return found
}

// isMissing reports whether the inventory lacks an object that the item may have to remove.
func (i *inventory) isMissing(r *storedObject) bool {
	seen, isIgnored := i.ignored[r.uid]
	switch {
	case r.deleting, r.isKept, i.contains(r.uid):
		return false
	case isIgnored:
		return seen != "" && version.IsOlder(seen, r.version)
	}
	return true
}

// itemForMissing returns the item whose inventory lacks an object, or "". It returns "" while the item writes its
// objects.
func (all *inventories) itemForMissing(r *storedObject) types.UID {
	if i := all.byName[r.mark]; i != nil && i.isMissing(r) {
		return all.itemToInform(i)
	}
	return ""
}

// itemForIgnored returns the item that ignores an object, or "". If such an object is gone, the item may have to
// correct what it reports.
func (all *inventories) itemForIgnored(r *storedObject) types.UID {
	if i := all.byName[r.mark]; i != nil && i.ignored[r.uid] != "" {
		return all.itemToInform(i)
	}
	return ""
}

// itemToInform returns the item of an inventory, or "" while the item writes its objects.
func (all *inventories) itemToInform(i *inventory) types.UID {
	if !i.report || all.baselines.isSuspended(i.item) {
		return ""
	}
	return i.item
}

// listAffected returns the items that must be informed about a new list of objects. If the list is not the first one of
// its source, the target may have been restored from a backup. Objects that were removed may then exist again, with an
// older version, so no object is ignored any more.
func (all *inventories) listAffected(before, now map[name]*storedObject, isFirst bool) (items []types.UID) {
	for id, r := range before {
		if now[id] == nil {
			items = append(items, all.itemForIgnored(r))
		}
	}
	if !isFirst {
		for _, i := range all.byName {
			clear(i.ignored)
		}
	}
	for _, r := range now {
		items = append(items, all.itemForMissing(r))
	}
	return items
}

// remove removes the inventory of an item.
func (all *inventories) remove(item types.UID) {
	maps.DeleteFunc(all.byName, func(_ uint64, i *inventory) bool { return i.item == item })
}

// getMark returns the key of the name of the item that an object belongs to, or 0.
func getMark(m metav1.Object) uint64 {
	owner, found := ownership.GetOwner(m)
	if !found || owner.Name == "" {
		return 0
	}
	return hashName(owner)
}

// listMarkKeys returns the keys of the name of an item.
func listMarkKeys(owner ownership.Owner) []uint64 { return listKeys(owner)[1:] }

// isKeptOnPurpose reports whether an object stays in the cluster when its item does not want it any more.
func isKeptOnPurpose(m metav1.Object) bool {
	return m.GetAnnotations()[ownership.AnnotationPolicy] != ""
}
