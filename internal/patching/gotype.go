// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
)

// shape is what a Go type specifies about one member of its JSON form.
type shape struct {
	// elem is the type of the member, or nil if it is not known.
	elem reflect.Type
	// mergeKey is the key that identifies the items of a list.
	mergeKey string
	// absent means that the member is not stored if the JSON form does not have it. A field that is omitted when empty,
	// and one that the type does not declare, may be stored.
	absent bool
	// inline means that Go cannot express the absence of the member.
	inline bool
}

const defaultMergeKey = "name"

var marshaler = reflect.TypeFor[json.Marshaler]()

// isOpaque reports whether a type has its own JSON encoding.
func isOpaque(t reflect.Type) bool {
	return t == nil || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

func pointedTo(t reflect.Type) reflect.Type {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// memberOf returns the shape of a member of t. If t is a list, the member is an item.
func memberOf(t reflect.Type, key string) shape {
	t = pointedTo(t)
	out := shape{mergeKey: defaultMergeKey, absent: true}
	if isOpaque(t) {
		return out
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice, reflect.Array:
		out.elem = t.Elem()
	case reflect.Struct:
		field, declared := fieldOf(t, key)
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

// fieldOf finds a field by its JSON name, including those of embedded structs.
func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	if t.Kind() != reflect.Struct {
		return reflect.StructField{}, false
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "":
			if found, ok := fieldOf(pointedTo(field.Type), key); ok {
				return found, true
			}
		case cmp.Or(name, field.Name) == key && field.IsExported():
			return field, true
		}
	}
	return reflect.StructField{}, false
}

// unproven reports what has to be done because the JSON form of a Go object does not prove that merge changes change
// nothing: whether they must be sent, or the object must be read first, because a deletion would create its parent.
func unproven(t reflect.Type, overlay, body map[string]any) (send, read bool) {
	for key, change := range overlay {
		if key == fieldMetadata && body[fieldMetadata] != nil {
			continue // all of it is known
		}
		have, exists := body[key]
		more, first := unprovenMember(memberOf(t, key), change, have, exists)
		send, read = send || more, read || first
	}
	return send, read
}

// unprovenMember is unproven for one member of an object.
func unprovenMember(member shape, change, have any, exists bool) (send, read bool) {
	below, isObject := change.(map[string]any)
	known, _ := have.(map[string]any)
	switch {
	case change == nil:
		return !exists && !member.absent, false
	case isObject && known != nil:
		return unproven(member.elem, below, known)
	case isObject && !exists && deletesOnly(below):
		return false, !member.absent && !isMap(member.elem)
	default:
		return exists && !member.absent && IsZero(change), false
	}
}

// isStoredForm reports whether the API server itself stores objects of this type, so that fields that the type omits
// are not stored.
func isStoredForm(t reflect.Type) bool { return strings.HasPrefix(t.PkgPath(), "k8s.io/api") }

func isMap(t reflect.Type) bool { return t != nil && t.Kind() == reflect.Map }
