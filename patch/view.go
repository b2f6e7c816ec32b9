// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"iter"
	"maps"
	"slices"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// View is a place in the merge changes of a patch. It may be created before the place exists, and reading from it
// creates nothing. Values are JSON values. View copies all values that are set or returned.
type View struct {
	patch *Patch
	path  []string
}

// Body returns the view of the whole object.
func (p *Patch) Body() View { return View{patch: p} }

// Metadata returns the view of the object's metadata.
func (p *Patch) Metadata() View { return p.Body().In("metadata") }

// Labels returns the view of the object's labels.
func (p *Patch) Labels() View { return p.Metadata().In("labels") }

// Annotations returns the view of the object's annotations.
func (p *Patch) Annotations() View { return p.Metadata().In("annotations") }

// Spec returns the view of the object's spec.
func (p *Patch) Spec() View { return p.Body().In("spec") }

// Status returns the view of the object's status. It is written to the status subresource if the kind has one.
func (p *Patch) Status() View { return p.Body().In("status") }

// In returns the view below the given keys. The items of lists have no view: Apply returns a *FieldError if the path
// leads through a list.
func (v View) In(keys ...string) View {
	return View{patch: v.patch, path: slices.Concat(v.path, keys)}
}

// Set records value for the field key and replaces what was recorded for it before. A nil value deletes the field from
// the object; to remove the record instead, use Forget. Objects are merged recursively into the stored object, and a
// nil value in them deletes a field too. Every other value, including a list, replaces the stored value. A recorded
// value above this place that is not an object is overwritten.
//
// value may be anything that can be expressed in JSON. If it cannot, Apply, Fold and Preview return a *FieldError until
// the value is set again or forgotten.
func (v View) Set(key string, value any) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	v.forget(key)
	path := append(slices.Clone(v.path), key)
	v.patch.dropFaults(path)
	if plain, ok := v.patch.plain(path, value); ok {
		v.make()[key] = plain
	}
}

// Get returns what is recorded for the field: nil and true if it will be deleted, nil and false if nothing is recorded.
// It does not read the object.
func (v View) Get(key string) (any, bool) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	value, exists := v.find()[key]
	value, _ = patching.Normal(value) // a copy
	return value, exists
}

// Forget removes what is recorded for the field and below it, so that the field of the object does not change.
func (v View) Forget(key string) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	v.forget(key)
}

// Len returns the number of fields directly at this place for which something is recorded.
func (v View) Len() int {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	return len(v.find())
}

// All iterates over what is recorded directly at this place, sorted by key. It iterates over a copy, so the loop may
// change the patch.
func (v View) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		v.patch.mu.Lock()
		noted := patching.Clone(v.find())
		v.patch.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(noted)) {
			if !yield(key, noted[key]) {
				return
			}
		}
	}
}

// forget removes the record for the field, its errors, and places that are empty afterwards. The caller holds the lock.
func (v View) forget(key string) {
	path := append(slices.Clone(v.path), key)
	maps.DeleteFunc(v.patch.faults, func(_ string, f fault) bool {
		return len(f.path) >= len(path) && slices.Equal(f.path[:len(path)], path)
	})
	delete(v.find(), key)
	for depth := len(v.path); depth > 0; depth-- {
		place := View{patch: v.patch, path: v.path[:depth]}
		if at := place.find(); at == nil || len(at) > 0 {
			return
		}
		delete(View{patch: v.patch, path: v.path[:depth-1]}.find(), v.path[depth-1])
	}
}

// find returns the place, or nil if it does not exist. The caller holds the lock.
func (v View) find() map[string]any {
	at := v.patch.changes
	for _, key := range v.path {
		at, _ = at[key].(map[string]any)
	}
	return at
}

// make returns the place and creates it if necessary. The caller holds the lock.
func (v View) make() map[string]any {
	p := v.patch
	if p.changes == nil {
		p.changes = map[string]any{}
	}
	if p.places == nil {
		p.places = map[string][]string{}
	}
	if len(v.path) > 0 {
		p.places[patching.PathOf(v.path...)] = v.path
	}
	at := p.changes
	for _, key := range v.path {
		next, _ := at[key].(map[string]any)
		if next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	return at
}
