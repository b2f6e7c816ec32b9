// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"maps"
	"slices"
)

// MergePatch returns the JSON merge patch (RFC 7386) that turns `base` into `wanted`. It is empty if the objects are
// equal. The objects must not contain explicit nulls.
func MergePatch(base, wanted map[string]any) map[string]any {
	out := map[string]any{}
	for key := range base {
		if _, keep := wanted[key]; !keep {
			out[key] = nil
		}
	}
	for key, want := range wanted {
		have, exists := base[key]
		if exists && Equal(have, want) {
			continue
		}
		haveObject, isObject := have.(map[string]any)
		wantObject, becomesObject := want.(map[string]any)
		if isObject && becomesObject {
			want = MergePatch(haveObject, wantObject)
		}
		out[key] = want
	}
	return out
}

// ApplyMerge applies a merge patch to an object and returns the result. It does not change its arguments. There is one
// difference to RFC 7386: deleting a field of an absent object does not create that object.
func ApplyMerge(base, overlay map[string]any) map[string]any {
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
			out[key] = ApplyMerge(have, changeObject)
		default:
			out[key] = change
		}
	}
	return out
}

// effective returns a copy of a merge patch without useless deletions. If an object does not exist in the body, and the
// patch only deletes members of this object, effective leaves the object out. Otherwise the API server would create it.
// The result `stripped` is true if anything was left out.
func effective(overlay, base map[string]any) (out map[string]any, stripped bool) {
	out = make(map[string]any, len(overlay))
	for key, change := range overlay {
		if changeObject, isObject := change.(map[string]any); isObject {
			have, exists := base[key].(map[string]any)
			if !exists && deletesOnly(changeObject) {
				stripped = true
				continue
			}
			inner, some := effective(changeObject, have)
			change, stripped = inner, stripped || some
		}
		out[key] = change
	}
	return out, stripped
}

// deletesOnly reports whether a merge patch contains only deletions. It returns false if the patch sets a value, even
// an empty object.
func deletesOnly(overlay map[string]any) bool {
	for _, change := range overlay {
		if changeObject, isObject := change.(map[string]any); change != nil && (!isObject || !deletesOnly(changeObject)) {
			return false
		}
	}
	return len(overlay) > 0
}

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
