// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// normal is like Normal, but for a body. It returns an empty map for nil.
func normal(body map[string]any) (map[string]any, error) {
	value, err := Normal(body)
	out, _ := value.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out, err
}

// Clone returns a deep copy of a body of plain JSON values.
func Clone(body map[string]any) map[string]any {
	out, _ := normal(body) // plain values never fail
	return out
}

// Normal returns a deep copy of a value that consists only of plain JSON values: nil, bool, string, int64, float64,
// []any and map[string]any. If JSON cannot express a part of the value, Normal returns a *FieldError. The path in the
// error begins at the value.
func Normal(value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &FieldError{Reason: "NaN and infinity cannot be expressed in JSON"}
		}
		return v, nil
	case map[string]any:
		return normalMap(v)
	case []any:
		return normalList(v)
	}
	return recode(value)
}

func normalMap(value map[string]any) (any, error) {
	if value == nil {
		return nil, nil
	}
	out := make(map[string]any, len(value))
	for key, member := range value {
		plain, err := Normal(member)
		if err != nil {
			return nil, Below(pathElement(key), err)
		}
		out[key] = plain
	}
	return out, nil
}

func normalList(value []any) (any, error) {
	if value == nil {
		return nil, nil
	}
	out := make([]any, len(value))
	for i, item := range value {
		plain, err := Normal(item)
		if err != nil {
			return nil, Below("["+strconv.Itoa(i)+"]", err)
		}
		out[i] = plain
	}
	return out, nil
}

// Below prepends a path to the path in a *FieldError. It returns any other error unchanged.
func Below(path string, err error) error {
	if field, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{Path: joinPath(path, field.Path), Reason: field.Reason}
	}
	return err
}

// recode converts a value to plain JSON values by encoding it as JSON text.
func recode(value any) (any, error) {
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

// size returns the length of the JSON text of a plain JSON value.
func size(value any) int {
	data, _ := json.Marshal(value) // plain values never fail
	return len(data)
}

// DropListNulls removes nulls from objects inside lists. In a merge patch, a null usually deletes a field. Inside a
// list, it has no effect, because the API server drops it.
func DropListNulls(value any) { dropNulls(value, false) }

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
