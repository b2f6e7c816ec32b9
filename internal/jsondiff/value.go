// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Equal reports whether two decoded JSON values are equal. The numbers 1 and 1.0 are equal.
func Equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, Equal)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, Equal)
	case int64:
		if y, ok := b.(float64); ok {
			return float64(x) == y
		}
	case float64:
		if y, ok := b.(int64); ok {
			return x == float64(y)
		}
	}
	return a == b
}

// ObjectAt returns the object at a path, or nil if the path does not exist or leads to another value than an object.
func ObjectAt(object map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		object, _ = object[key].(map[string]any)
	}
	return object
}

// DeepCopy returns a deep copy of an object of plain JSON values. It returns an empty map for nil.
func DeepCopy(object map[string]any) map[string]any {
	out, _ := NormalizeObject(object) // plain values never fail
	return out
}

// NormalizeObject is like Normalize, but for an object. It returns an empty map for nil.
func NormalizeObject(object map[string]any) (map[string]any, error) {
	value, err := Normalize(object)
	out, _ := value.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out, err
}

// Normalize returns a deep copy of a value that consists only of plain JSON values: nil, bool, string, int64, float64,
// []any and map[string]any. If JSON cannot express a part of the value, Normalize returns a *FieldError. The path in
// the error begins at the value.
func Normalize(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &FieldError{Reason: "NaN and infinity cannot be expressed in JSON"}
		}
		return v, nil
	case map[string]any:
		return normalizeObject(v)
	case []any:
		return normalizeList(v)
	}
	return encodeAndDecode(value)
}

func normalizeObject(value map[string]any) (any, error) {
	if value == nil {
		return nil, nil
	}
	out := make(map[string]any, len(value))
	for key, member := range value {
		plain, err := Normalize(member)
		if err != nil {
			return nil, PrependPath(formatElement(key), err)
		}
		out[key] = plain
	}
	return out, nil
}

func normalizeList(value []any) (any, error) {
	if value == nil {
		return nil, nil
	}
	out := make([]any, len(value))
	for i, item := range value {
		plain, err := Normalize(item)
		if err != nil {
			return nil, PrependPath(formatElement(i), err)
		}
		out[i] = plain
	}
	return out, nil
}

// encodeAndDecode converts a value to plain JSON values by encoding it as JSON text.
func encodeAndDecode(value any) (any, error) {
	data, err := json.Marshal(value)
	var out any
	if err == nil {
		err = utiljson.Unmarshal(data, &out)
	}
	if err != nil { // the text of err may contain the value
		return nil, &FieldError{Reason: fmt.Sprintf("a value of the type %T cannot be expressed in JSON", value)}
	}
	return out, nil
}

// IsZero reports whether a plain JSON value is null, false, 0 or empty, or an object that contains only such values. A
// Go type may not distinguish such a value from an absent one.
func IsZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !IsZero(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return value == nil || Equal(value, int64(0))
}

// DropListNulls removes nulls from objects inside lists. In a merge patch, a null usually deletes a field. Inside a
// list, it has no effect, because the API server drops it.
func DropListNulls(value any) { dropNulls(value, false) }

// DropNulls removes all nulls from objects.
func DropNulls(value any) { dropNulls(value, true) }

// dropNulls removes, in place, the keys of objects whose value is null. If `all` is false, it changes only objects
// inside lists. It keeps null items of lists.
func dropNulls(value any, all bool) {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if member == nil && all {
				delete(v, key)
			}
			dropNulls(member, all)
		}
	case []any:
		for _, item := range v {
			dropNulls(item, true)
		}
	}
}

// RoundTrip returns the result of encoding an object as JSON and decoding it again. Unlike DeepCopy, it accepts all Go
// types, and converts numbers such as 1.0 to int64.
func RoundTrip(object map[string]any) (map[string]any, error) {
	if isCanonical(object, maxLevels) {
		return DeepCopy(object), nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// maxLevels is the maximum number of nested levels that RoundTrip copies without JSON. The limit is necessary because
// copying a value that contains itself would never end.
const maxLevels = 100

// isCanonical reports whether JSON would not change a value, and the value has at most the given number of levels. Such
// a value can be copied without JSON, which takes much less time.
func isCanonical(value any, levels int) bool {
	switch value := value.(type) {
	case nil, bool, int64:
		return true
	case string:
		return utf8.ValidString(value)
	case map[string]any:
		for key, member := range value {
			if !utf8.ValidString(key) || levels == 0 || !isCanonical(member, levels-1) {
				return false
			}
		}
		return value != nil
	case []any:
		for _, item := range value {
			if levels == 0 || !isCanonical(item, levels-1) {
				return false
			}
		}
		return value != nil
	}
	return false
}
