// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"reflect"
	"slices"
)

// claim adds what will be written to the inventory, and has the inventory stored if it grew. After an error the
// inventory is unchanged.
func (r *run) claim(ctx context.Context, objects []*object) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	inv, grew, err := r.foresee(objects)
	if err != nil {
		return err
	}
	if grew && r.options.Checkpoint != nil {
		if err := r.options.Checkpoint(ctx, inv); err != nil {
			return err
		}
	}
	for _, o := range objects {
		r.on(o.ref, func(s *slot) { s.want(o) })
	}
	return nil
}

// foresee returns the future inventory and whether it has additional objects, or an error if that inventory is not
// allowed.
func (r *run) foresee(objects []*object) (inv Inventory, grew bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := book{}
	faults := Errors{}
	for _, o := range objects {
		before := r.book.at(o.ref.id())
		if before.claimed && before.Component != o.Component {
			faults = append(faults, invalid(o.ref, "", "is wanted by the components %q and %q", before.Component, o.Component))
		}
		after := before
		after.want(o)
		grew = grew || before.gone && !after.gone
		if before.gone != after.gone || !reflect.DeepEqual(before.Entry, after.Entry) {
			next[o.ref.id()] = &after
		}
	}
	if len(next) == 0 || len(faults) > 0 {
		return Inventory{}, false, faults.err()
	}
	all := maps.Clone(r.book)
	maps.Copy(all, next)
	inv = all.inventory()
	if size := inv.size(); size > r.options.MaxInventory {
		err = invalid(Ref{}, "", "%d objects are too many: their inventory takes %d of at most %d bytes", len(inv.Entries), size, r.options.MaxInventory)
	}
	return inv, grew, err
}

// want copies from a manifest what the entry needs to know about the object and its deletion.
func (s *slot) want(o *object) {
	switch {
	case o.Policy == Ignore:
		s.gone = true
		return
	case o.Policy == Retain && s.gone:
		return
	case s.gone:
		*s = slot{Entry: Entry{Namespace: o.ref.Namespace, Name: o.ref.Name, Kind: o.ref.Kind}, fresh: true}
	}
	s.claimed = true
	s.Component, s.Requires = o.Component, slices.Clone(o.Requires)
	if o.Policy == Retain {
		s.Key, s.OnDelete = "", false // so that it is not watched
		return
	}
	s.APIVersion = o.ref.APIVersion
	if s.Policy = o.Policy; s.Policy == Manage {
		s.Policy = ""
	}
	s.OnDelete = o.Strategy == OnDelete && o.Policy != Immutable
	s.AnnotateBeforeDelete, s.PatchBeforeDelete = o.AnnotateBeforeDelete, o.PatchBeforeDelete
}
