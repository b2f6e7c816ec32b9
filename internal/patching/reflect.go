// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// memberType describes one member of the JSON form of a Go type.
type memberType struct {
	// elem is the type of the member, or nil if it is not known.
	elem reflect.Type
	// mergeKey is the key that identifies the items of a list.
	mergeKey string
	// absent is true if a member that is missing in the JSON form is also missing in the stored object. It is false for a
	// field with omitempty, and for a field that the type does not declare, because the API server may have stored a
	// value.
	absent bool
	// inline is true if the member is a struct and not a pointer, so that a Go value always contains it.
	inline bool
}

const defaultMergeKey = "name"

var marshaler = reflect.TypeFor[json.Marshaler]()

// isOpaque reports whether a type has its own JSON encoding.
func isOpaque(t reflect.Type) bool {
	return t == nil || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

func unwrapPointer(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// getMember returns the shape of a member of t. If t is a list, it returns the shape of an item.
func getMember(t reflect.Type, key string) memberType {
	t = unwrapPointer(t)
	out := memberType{mergeKey: defaultMergeKey, absent: true}
	if isOpaque(t) {
		return out
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		out.elem = t.Elem()
	case reflect.Struct:
		field, declared := findField(t, key)
		if !declared {
			out.absent = false
			return out
		}
		out.elem = field.Type
		if mergeKey := field.Tag.Get("patchMergeKey"); mergeKey != "" {
			out.mergeKey = mergeKey
		}
		kind := field.Type.Kind()
		out.absent = kind == reflect.Pointer || kind == reflect.Interface || isStoredForm(t)
		out.inline = kind == reflect.Struct && !isOpaque(field.Type)
	default:
	}
	return out
}

// findField finds a field by its JSON name. It also searches embedded structs.
func findField(t reflect.Type, key string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			if found, ok := findField(unwrapPointer(field.Type), key); ok {
				return found, true
			}
		case cmp.Or(name, field.Name) == key && field.IsExported():
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// checkUnproven looks for changes in a merge patch that have no effect on body but may have an effect on the stored
// object. This is possible because body is the JSON form of a Go object, which does not show all stored fields. If
// `send` is true, there are such changes, and they must be sent. If `read` is true, the object must be read first,
// because a deletion could otherwise create the parent of the deleted field.
func checkUnproven(t reflect.Type, overlay, body map[string]any) (send, read bool) {
	for key, change := range overlay {
		if key == fieldMetadata && body[fieldMetadata] != nil {
			continue // a Go object shows the complete metadata
		}
		have, exists := body[key]
		more, first := checkUnprovenMember(getMember(t, key), change, have, exists)
		send, read = send || more, read || first
	}
	return send, read
}

// checkUnprovenMember is like unproven, but for one member of an object.
func checkUnprovenMember(member memberType, change, have any, exists bool) (send, read bool) {
	below, isObject := change.(map[string]any)
	known, _ := have.(map[string]any)
	switch {
	case change == nil:
		return !exists && !member.absent, false
	case isObject && known != nil:
		return checkUnproven(member.elem, below, known)
	case isObject && !exists && jsondiff.IsDeleteOnly(below):
		return false, !member.absent && !isMap(member.elem)
	default:
		return exists && !member.absent && jsondiff.IsZero(change), false
	}
}

// isStoredForm reports whether the API server itself uses the Go type to store objects. It does not store fields that
// such a type omits.
func isStoredForm(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/api") }

func isMap(t reflect.Type) bool { return t != nil && t.Kind() == reflect.Map }
