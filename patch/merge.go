// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
)

// mergePatch returns the JSON merge patch (RFC 7386) that makes wanted out of base; it is empty when
// they are equal. Neither contains explicit nulls.
func mergePatch(base, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for key := range base {
		if _, keep := wanted[key]; !keep {
			out[key] = nil
		}
	}
	for key, want := range wanted {
		have, exists := base[key]
		if exists && equal(have, want) {
			continue
		}
		haveObject, isObject := have.(map[string]any)
		wantObject, becomesObject := want.(map[string]any)
		if isObject && becomesObject {
			want = mergePatch(haveObject, wantObject)
		}
		out[key] = want
	}
	return out
}

// applyMerge returns base with the merge patch applied; base and overlay are not changed. Other than in
// RFC 7386, deleting below what is absent does not create it.
func applyMerge(base, overlay map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, change := range overlay {
		changeObject, isObject := change.(map[string]any)
		switch {
		case change == nil:
			delete(out, key)
		case isObject:
			have, exists := out[key].(map[string]any)
			if !exists && deletesOnly(changeObject) {
				continue
			}
			out[key] = applyMerge(have, changeObject)
		default:
			out[key] = change
		}
	}
	return out
}

// effective returns the overlay without the parts that only delete below what base does not have.
func effective(overlay, base map[string]any) map[string]any {
	out := make(map[string]any, len(overlay))
	for key, change := range overlay {
		if changeObject, isObject := change.(map[string]any); isObject {
			have, exists := base[key].(map[string]any)
			if !exists && deletesOnly(changeObject) {
				continue
			}
			change = effective(changeObject, have)
		}
		out[key] = change
	}
	return out
}

// deletesOnly tells that a merge patch sets nothing, not even an empty object.
func deletesOnly(overlay map[string]any) bool {
	for _, change := range overlay {
		if changeObject, isObject := change.(map[string]any); change != nil && (!isObject || !deletesOnly(changeObject)) {
			return false
		}
	}
	return len(overlay) > 0
}

// equal compares two decoded JSON values; 1 and 1.0 are the same number.
func equal(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, equal)
	case []any:
		y, ok := b.([]any)
		return ok && equalLists(x, y)
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

func equalLists(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}
