// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Overlay merges two objects recursively and returns the result. If both objects set a field, the value of the second
// object takes precedence.
func Overlay(base, top map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, base)
	for key, value := range top {
		below, isMap := out[key].(map[string]any)
		above, isToo := value.(map[string]any)
		if isMap && isToo {
			value = Overlay(below, above)
		}
		out[key] = value
	}
	return out
}

// Fill returns a copy of the first object. Fields that are missing or zero in the first object get the values of the
// second object. Fill does not merge lists: a list that is not empty stays unchanged.
func Fill(base, more map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, value := range more {
		have, exists := out[key]
		below, isMap := have.(map[string]any)
		above, isToo := value.(map[string]any)
		switch {
		case isMap && isToo:
			out[key] = Fill(below, above)
		case !exists || isZero(have):
			out[key] = value
		}
	}
	return out
}

func isZero(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Map || v.Kind() == reflect.Slice {
		return v.Len() == 0
	}
	return v.IsZero()
}

// MergePatch returns the JSON merge patch that turns one object into another.
func MergePatch(from, to map[string]any) map[string]any {
	out := map[string]any{}
	for key := range from {
		if _, keep := to[key]; !keep {
			out[key] = nil
		}
	}
	for key, want := range to {
		have, exists := from[key]
		below, isMap := have.(map[string]any)
		above, isToo := want.(map[string]any)
		switch {
		case exists && equality.Semantic.DeepEqual(have, want):
		case isMap && isToo:
			out[key] = MergePatch(below, above)
		default:
			out[key] = want
		}
	}
	return out
}
