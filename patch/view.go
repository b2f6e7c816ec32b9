// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"iter"
	"maps"
	"slices"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// View gives access to the merge changes of a patch for one nested object, such as the labels. The patch need not
// contain changes for this object when the View is created, and reading does not add any. Values are JSON values. View
// copies all values that are set or returned.
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

// Status returns the view of the object's status. Changes of the status are written to the status subresource if the
// kind has one.
func (p *Patch) Status() View { return p.Body().In("status") }

// In returns the view of the nested object at the given keys. There are no views of the items of lists: Apply returns a
// *FieldError if the path leads through a list.
func (v View) In(keys ...string) View {
	return View{patch: v.patch, path: slices.Concat(v.path, keys)}
}

// Set records a value for the field with the given key and replaces the value that was recorded for the field before. A
// nil value deletes the field from the stored object; to remove the record instead, use Forget. If the value is an
// object, it is merged recursively into the stored object, and nil values in it also delete fields. Any other value,
// including a list, replaces the stored value. If a value that is not an object was recorded for a parent of the field,
// Set overwrites that value.
//
// The value may be anything that can be expressed in JSON. If JSON cannot express it, Apply, ApplyTo and ApplyToCopy
// return a *FieldError until another value is set or the record is removed.
func (v View) Set(key string, value any) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	v.forget(key)
	path := append(slices.Clone(v.path), key)
	v.patch.dropFaults(path)
	if plain, ok := v.patch.toPlain(path, value); ok {
		v.make()[key] = plain
	}
}

// Get returns the value that is recorded for the field. It returns nil and true if the field will be deleted, and nil
// and false if nothing is recorded. It does not read the object.
func (v View) Get(key string) (any, bool) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	value, exists := v.find()[key]
	value, _ = jsondiff.Normalize(value) // a copy
	return value, exists
}

// Forget removes the record for the field and for all fields below it, so that the patch does not change them.
func (v View) Forget(key string) {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	v.forget(key)
}

// Len returns the number of fields of this object for which a value or a deletion is recorded. It does not count nested
// fields.
func (v View) Len() int {
	v.patch.mu.Lock()
	defer v.patch.mu.Unlock()
	return len(v.find())
}

// All iterates over the recorded fields of this object and their values, sorted by key. It iterates over a copy, so the
// loop may change the patch.
func (v View) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		v.patch.mu.Lock()
		noted := jsondiff.DeepCopy(v.find())
		v.patch.mu.Unlock()
		for _, key := range slices.Sorted(maps.Keys(noted)) {
			if !yield(key, noted[key]) {
				return
			}
		}
	}
}

// forget removes the recorded value of the field. It also removes the entries for the field and for all fields below it
// from v.patch.faults, which contains the values that JSON cannot express. If an object that contains the field is then
// empty, forget removes this object too. The caller holds the lock.
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

// find returns the recorded changes of the view's object, or nil if there are none. The caller holds the lock.
func (v View) find() map[string]any { return jsondiff.ObjectAt(v.patch.changes, v.path...) }

// make returns the map with the recorded changes of the view's object, and creates the map if necessary. The caller
// holds the lock.
func (v View) make() map[string]any {
	p := v.patch
	if p.changes == nil {
		p.changes = map[string]any{}
	}
	if p.places == nil {
		p.places = map[string][]string{}
	}
	if len(v.path) > 0 {
		p.places[jsondiff.PathOf(v.path...)] = v.path
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
