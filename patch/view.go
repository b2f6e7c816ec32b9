// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"iter"
	"maps"
	"slices"

	"github.com/deployerkit/deployerkit/internal/patching"
)

// View is a place in a patch's dictionary of merge changes. It may be made before the place exists, and reading through it creates
// nothing. Values are JSON values. What goes in and comes out is copied.
type View struct {
	patch *Patch
	path  []string
}

// Body is the whole dictionary.
func (p *Patch) Body() View { return View{patch: p} }

// Metadata is the object's metadata.
func (p *Patch) Metadata() View { return p.Body().In("metadata") }

// Labels are the object's labels.
func (p *Patch) Labels() View { return p.Metadata().In("labels") }

// Annotations are the object's annotations.
func (p *Patch) Annotations() View { return p.Metadata().In("annotations") }

// Spec is the object's spec.
func (p *Patch) Spec() View { return p.Body().In("spec") }

// Status is the object's status. Where it is a subresource it goes there, otherwise with the body.
func (p *Patch) Status() View { return p.Body().In("status") }

// In is the place below the keys. The items of lists are no places: Apply returns a *FieldError if the path leads through a list.
func (v View) In(keys ...string) View {
	return View{patch: v.patch, path: slices.Concat(v.path, keys)}
}

// Set notes a value for the field, instead of what was noted for it before. nil deletes the field from the object. Forget removes the
// note. Objects are merged recursively into what is stored, and nil deletes there too. Every other value, lists included, replaces what
// is stored. A noted value above this place that is no object gives way.
//
// value may be anything that can be expressed in JSON. If it cannot, Apply, Fold and Preview return a *FieldError until the value is
// set again or forgotten.
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

// Get returns what is noted for the field: nil and true if it will be deleted, nil and false if nothing is noted. It does not look at
// the object.
func (v View) Get(key string) (any, bool) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	value, exists := v.find()[key]
	value, _ = patching.Normal(value) // a copy
	return value, exists
}

// Forget removes what was noted for the field and below it: the object keeps what it has.
func (v View) Forget(key string) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	v.forget(key)
}

// Len returns the number of fields that have something noted, directly at this place.
func (v View) Len() int {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	return len(v.find())
}

// All goes over what is noted directly at this place, sorted by key. It goes over a copy, so the loop may change the patch.
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

// forget removes the note for the field, its errors, and the places that are empty then. The lock is held.
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

// find returns the place, nil if it does not exist. The lock is held.
func (v View) find() map[string]any {
	at := v.patch.changes
	for _, key := range v.path {
		at, _ = at[key].(map[string]any)
	}
	return at
}

// make returns the place and creates it where needed. The lock is held.
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
