// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/observe"
)

// isWatchable reports whether a watch can detect changes of an object, so that Report.Owned contains it.
func isWatchable(s object.Record) bool {
	return !s.Gone && !s.Deleting && s.Finish != FinishGone && (s.Fingerprint != "" || s.OnDelete && s.UID != "" && s.Hash != "")
}

// setDesired copies the settings of a Desired to the record, including the settings for the deletion of the object.
func setDesired(s *object.Record, o *desiredObject) {
	switch {
	case o.Policy == PolicyIgnore:
		s.Gone = true
		return
	case o.Policy == PolicyRetain && s.Gone:
		return
	case s.Gone:
		*s = object.Record{Entry: Entry{Namespace: o.ref.Namespace, Name: o.ref.Name, Kind: o.ref.Kind}, IsNew: true}
	}
	s.Claimed = true
	s.Component, s.Requires = o.Component, slices.Clone(o.Requires)
	if o.Policy == PolicyRetain {
		s.Fingerprint, s.OnDelete = "", false // changes by other writers are not drift as long as the object is retained
		return
	}
	s.APIVersion = o.ref.APIVersion
	if s.Policy = o.Policy; s.Policy == PolicyManage {
		s.Policy = ""
	}
	s.OnDelete = o.Strategy == StrategyOnDelete && o.Policy != PolicyImmutable
	s.Aggregates = isAggregating(o.Object)
	s.AnnotateBeforeDelete, s.PatchBeforeDelete = o.AnnotateBeforeDelete, o.PatchBeforeDelete
}

// tracker stores the entries of an Inventory during a call. Each object has its own lock, so that only one goroutine at
// a time works on the object. The goroutine changes a copy of the entry (see tracker.updateEntry), so that other
// goroutines can read the inventory at any time.
type tracker struct {
	// storeLock is held while an inventory is stored. Inventories are therefore stored one after the other, and each
	// contains the entries of the one before.
	storeLock   sync.Mutex
	objectLocks sync.Map // contains the *sync.Mutex of each object, by toID

	mu      sync.Mutex // guards all fields below
	entries map[Ref]*object.Record
	// reserved is the size of Inventory.Former, encoded as JSON, in bytes.
	reserved int
}

func newTracker(inv Inventory) *tracker {
	out := &tracker{entries: make(map[Ref]*object.Record, len(inv.Entries))}
	for _, entry := range inv.Entries {
		out.entries[toID(entry.Ref())] = &object.Record{Entry: entry}
	}
	if len(inv.Former) > 0 {
		out.reserved = Inventory{Former: inv.Former}.size()
	}
	return out
}

// get returns a copy of the entry of an object. The copy is marked as gone if the inventory does not contain the
// object.
func (t *tracker) get(ref Ref) object.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.getLocked(toID(ref))
}

// getLocked is like tracker.get, but the caller must hold mu.
func (t *tracker) getLocked(id Ref) object.Record {
	if s := t.entries[id]; s != nil {
		return *s
	}
	return object.Record{Gone: true}
}

// updateEntry calls f with a copy of the entry of an object, and stores the changed copy. It prevents concurrent work
// on the object. The copy is marked as gone if the inventory does not contain the object.
func (t *tracker) updateEntry(ref Ref, f func(*object.Record)) {
	id := toID(ref)
	busy, _ := t.objectLocks.LoadOrStore(id, &sync.Mutex{})
	lock := busy.(*sync.Mutex)
	lock.Lock()
	defer lock.Unlock()
	own := t.get(ref)
	f(&own)
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.entries[id]; known != nil {
		*known = own
	} else if !own.Gone {
		t.entries[id] = &own
	}
}

// forget removes the entry of an object.
func (t *tracker) forget(ref Ref) { t.updateEntry(ref, func(s *object.Record) { s.Gone = true }) }

// all returns a copy of every entry, in a fixed order.
func (t *tracker) all() []object.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]object.Record, 0, len(t.entries))
	for _, s := range sortRecords(t.entries) {
		out = append(out, *s)
	}
	return out
}

func sortRecords(entries map[Ref]*object.Record) []*object.Record {
	out := make([]*object.Record, 0, len(entries))
	for _, s := range entries {
		if !s.Gone {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *object.Record) int { return compareRefs(a.Ref(), b.Ref()) })
	return out
}

// inventory returns the remaining entries, in a fixed order.
func (t *tracker) inventory() Inventory {
	t.mu.Lock()
	defer t.mu.Unlock()
	return toInventory(t.entries)
}

func toInventory(entries map[Ref]*object.Record) Inventory {
	out := Inventory{}
	for _, s := range sortRecords(entries) {
		out.Entries = append(out.Entries, s.Entry)
	}
	return out
}

// claim adds the objects to the inventory. If any of them are new, it stores the inventory. After an error, the
// inventory is unchanged.
func (t *tracker) claim(ctx context.Context, objects []*desiredObject, options *Options) error {
	t.storeLock.Lock()
	defer t.storeLock.Unlock()
	inv, grew, err := t.computeClaim(objects, options.MaxInventory)
	if err != nil {
		return err
	}
	if grew && options.Checkpoint != nil {
		if err := options.Checkpoint(ctx, inv); err != nil {
			return err
		}
	}
	t.setWanted(objects)
	return nil
}

// filterServed returns the objects without those whose kind the cluster does not serve and that the inventory does not
// contain.
func filterServed(objects []*desiredObject) []*desiredObject {
	return slices.DeleteFunc(slices.Clone(objects), func(o *desiredObject) bool { return o.unserved != nil })
}

// setWanted copies the settings of the objects to their entries.
func (t *tracker) setWanted(objects []*desiredObject) {
	for _, o := range filterServed(objects) {
		t.updateEntry(o.ref, func(s *object.Record) { setDesired(s, o) })
	}
}

// computeClaim returns the inventory that results from claiming the objects, and reports whether any of them are new.
// It returns an error if the resulting inventory is too large, or if two components claim the same object.
func (t *tracker) computeClaim(objects []*desiredObject, maxSize int) (inv Inventory, grew bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next := map[Ref]*object.Record{}
	faults := Errors{}
	for _, o := range filterServed(objects) {
		before := t.getLocked(toID(o.ref))
		if before.Claimed && before.Component != o.Component {
			faults = append(faults, newInvalidError(o.ref, "", "is returned by two components, %q and %q", before.Component, o.Component))
		}
		after := before
		setDesired(&after, o)
		grew = grew || before.Gone && !after.Gone
		if before.Gone != after.Gone || !reflect.DeepEqual(before.Entry, after.Entry) {
			next[toID(o.ref)] = &after
		}
	}
	if len(next) == 0 || len(faults) > 0 {
		return Inventory{}, false, faults.err()
	}
	all := maps.Clone(t.entries)
	maps.Copy(all, next)
	inv = toInventory(all)
	if size := inv.size() + t.reserved; size > maxSize {
		err = newInvalidError(Ref{}, "", "%d objects are too many: their inventory has %d bytes, but at most %d are allowed", len(inv.Entries), size, maxSize)
	}
	return inv, grew, err
}

// hasUnderOtherName reports whether the same object, identified by its UID, was claimed under another API group.
func (t *tracker) hasUnderOtherName(e Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, other := range t.entries {
		if other.Claimed && !other.Gone && e.UID != "" && other.UID == e.UID && id != toID(e.Ref()) {
			return true
		}
	}
	return false
}

// listOwned lists the objects for which a watch can detect changes. If the resource of an object is not known, owned
// looks it up in `kinds`. It leaves out objects whose resource it cannot determine. If `kinds` is nil, it looks up
// nothing.
func (t *tracker) listOwned(kinds *kinds) []observe.BaselineObject {
	var out []observe.BaselineObject
	for _, s := range t.all() {
		if !isWatchable(s) {
			continue
		}
		resource := kinds.findResource(s)
		if resource.Empty() {
			continue
		}
		one := observe.BaselineObject{Object: observe.Object{Resource: resource, NamespacedName: s.Ref().Key()}, UID: s.UID, Fingerprint: s.Fingerprint, Finishes: s.Finish != "", ResourceVersion: s.Version}
		if s.OnDelete {
			one.Fingerprint = ""
		}
		out = append(out, one)
	}
	return out
}

// Applied records which objects were applied in a run. A run may consist of several calls of the engine (see
// Options.Applied). The zero value is empty and ready for use. An Applied is safe for concurrent use. If an Applied is
// lost, the engine sends additional requests, but they change nothing.
type Applied struct {
	objects sync.Map // contains a state for each object, by toID
}

// state identifies an object and the manifest that was applied to it.
type state struct {
	uid  types.UID
	hash string
}

// add records which manifest was applied to an object.
func (a *Applied) add(id Ref, s state) {
	if a != nil {
		a.objects.Store(id, s)
	}
}

// has reports whether the same manifest was already applied to the same object.
func (a *Applied) has(id Ref, s state) bool {
	if a == nil || s.uid == "" || s.hash == "" {
		return false
	}
	found, _ := a.objects.Load(id)
	return found == s
}
