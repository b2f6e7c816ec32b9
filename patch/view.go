// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"iter"
	"maps"
	"slices"
)

// View is a place in a patch's dictionary of merge changes. It may be made before the place exists, and
// reading through it creates nothing. Values are JSON values; what goes in and comes out is copied.
type View struct {
	patch *Patch
	path  []string
}

// Body is the whole dictionary.
func (p *Patch) Body() View { return View{patch: p} }

// Metadata is the object's metadata.
func (p *Patch) Metadata() View { return p.Body().In(fieldMetadata) }

// Labels are the object's labels.
func (p *Patch) Labels() View { return p.Metadata().In("labels") }

// Annotations are the object's annotations.
func (p *Patch) Annotations() View { return p.Metadata().In("annotations") }

// Spec is the object's spec.
func (p *Patch) Spec() View { return p.Body().In("spec") }

// Status is the object's status. Where it is a subresource it goes there, otherwise with the body.
func (p *Patch) Status() View { return p.Body().In(fieldStatus) }

// In is the place below the keys.
func (v View) In(keys ...string) View {
	return View{patch: v.patch, path: slices.Concat(v.path, keys)}
}

// Set notes that the field shall have the value, instead of whatever was noted for it before. nil deletes
// the field from the object; Forget is how to take a change back. Objects are merged recursively into
// what is stored, with nil deleting there too; every other value, lists included, replaces what is stored.
// A noted value above this place that is no object gives way.
// value may be anything that can be expressed in JSON; if it cannot, Apply, Fold and Preview say so.
func (v View) Set(key string, value any) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	path := pathOf(append(slices.Clone(v.path), key)...)
	stored, err := normalValue(path, value)
	if err != nil {
		if v.patch.faults == nil {
			v.patch.faults = map[string]error{}
		}
		v.patch.faults[path] = err
		return
	}
	delete(v.patch.faults, path)
	dropListNulls(stored)
	v.make()[key] = stored
}

// Get returns what is noted for the field: nil and true if it shall be deleted, nil and false if nothing is
// noted. What the object has is not looked at.
func (v View) Get(key string) (any, bool) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	value, exists := v.find()[key]
	return cloneValue(value), exists
}

// Forget takes back what was noted for the field and below it: the object keeps what it has.
func (v View) Forget(key string) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	delete(v.patch.faults, pathOf(append(slices.Clone(v.path), key)...))
	delete(v.find(), key)
	v.tidy()
}

// Len tells how many fields have something noted, directly at this place.
func (v View) Len() int {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	return len(v.find())
}

// All goes over what is noted directly at this place, sorted by key: a copy made at the start, so the loop
// may change the patch.
func (v View) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		v.patch.mu.Lock()
		noted, _ := cloneValue(v.find()).(map[string]any)
		v.patch.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(noted)) {
			if !yield(key, noted[key]) {
				return
			}
		}
	}
}

// dropListNulls removes nulls from the objects inside of lists, where they delete nothing: the API server
// leaves them out of merge patches.
func dropListNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			dropListNulls(member)
		}
	case []any:
		dropNulls(v)
	}
}

// find returns the place, nil if it does not exist. The lock is held.
func (v View) find() map[string]any {
	at := v.patch.changes
	for _, key := range v.path {
		at = object(at, key)
	}
	return at
}

// make returns the place and creates it where needed. The lock is held.
func (v View) make() map[string]any {
	if v.patch.changes == nil {
		v.patch.changes = map[string]any{}
	}
	at := v.patch.changes
	for _, key := range v.path {
		next := object(at, key)
		if next == nil {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	return at
}

// tidy removes the place, and those above it, while they are empty. The lock is held.
func (v View) tidy() {
	for depth := len(v.path); depth > 0; depth-- {
		place := View{patch: v.patch, path: v.path[:depth]}
		if at := place.find(); at == nil || len(at) > 0 {
			return
		}
		delete(View{patch: v.patch, path: v.path[:depth-1]}.find(), v.path[depth-1])
	}
}
