// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// field is a field in an object.
type field struct {
	parent any // a map or a list
	key    string
	index  int
	path   fieldpath.Path
}

// findField follows a JSON pointer. It returns nil if the parent of the field does not exist.
func findField(object map[string]any, pointer string) *field {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	var current any = object
	var path fieldpath.Path
	for i, part := range parts {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		out := &field{parent: current, key: part}
		switch parent := current.(type) {
		case map[string]any:
			path = append(path, fieldpath.PathElement{FieldName: &part})
			current = parent[part]
		case []any:
			index, err := strconv.Atoi(part)
			if err != nil || index < 0 || index >= len(parent) {
				return nil
			}
			out.index, current = index, parent[index]
			path = append(path, elementOf(current, index))
		default:
			return nil
		}
		if out.path = path; i == len(parts)-1 {
			return out
		}
	}
	return nil
}

// elementOf returns the element of a path for an element of a list. The API server identifies most elements by their
// name.
func elementOf(element any, index int) fieldpath.PathElement {
	if fields, ok := element.(map[string]any); ok {
		if name, ok := fields["name"].(string); ok {
			return fieldpath.PathElement{Key: fieldpath.KeyByFields("name", name)}
		}
	}
	return fieldpath.PathElement{Index: &index}
}

// isSet reports whether the field exists.
func (f *field) isSet() bool {
	fields, isMap := f.parent.(map[string]any)
	_, found := fields[f.key]
	return found || !isMap
}

// get returns the value of the field.
func (f *field) get() any {
	if list, ok := f.parent.([]any); ok {
		return list[f.index]
	}
	fields, _ := f.parent.(map[string]any)
	return fields[f.key]
}

// set sets the value of the field.
func (f *field) set(value any) {
	switch parent := f.parent.(type) {
	case map[string]any:
		parent[f.key] = value
	case []any:
		parent[f.index] = value
	}
}

// remove removes the field. Elements of lists stay.
func (f *field) remove() {
	if fields, ok := f.parent.(map[string]any); ok {
		delete(fields, f.key)
	}
}
