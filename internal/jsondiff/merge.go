// SPDX-License-Identifier: Apache-2.0

package jsondiff

import "maps"

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

// ApplyMergePatch applies a merge patch to an object and returns the result. There is one difference to RFC 7386:
// deleting a field of an absent object does not create that object.
func ApplyMergePatch(base, patch map[string]any) map[string]any {
	out := maps.Clone(base)
	if out == nil {
		out = map[string]any{}
	}
	for key, change := range patch {
		changeObject, isObject := change.(map[string]any)
		switch {
		case change == nil:
			delete(out, key)
		case isObject:
			have, exists := out[key].(map[string]any)
			if !exists && IsDeleteOnly(changeObject) {
				continue
			}
			out[key] = ApplyMergePatch(have, changeObject)
		default:
			out[key] = change
		}
	}
	return out
}

// DropUselessDeletions returns a copy of a merge patch without useless deletions. If an object does not exist in
// `base`, and the patch only deletes members of this object, the copy leaves the object out. Otherwise the API server
// would create it. The result `dropped` is true if anything was left out.
func DropUselessDeletions(patch, base map[string]any) (out map[string]any, dropped bool) {
	out = make(map[string]any, len(patch))
	for key, change := range patch {
		if changeObject, isObject := change.(map[string]any); isObject {
			have, exists := base[key].(map[string]any)
			if !exists && IsDeleteOnly(changeObject) {
				dropped = true
				continue
			}
			inner, some := DropUselessDeletions(changeObject, have)
			change, dropped = inner, dropped || some
		}
		out[key] = change
	}
	return out, dropped
}

// IsDeleteOnly reports whether a merge patch contains only deletions. It returns false if the patch sets a value, even
// an empty object.
func IsDeleteOnly(patch map[string]any) bool {
	for _, change := range patch {
		if changeObject, isObject := change.(map[string]any); change != nil && (!isObject || !IsDeleteOnly(changeObject)) {
			return false
		}
	}
	return len(patch) > 0
}

// MergeOverlay merges two objects recursively and returns the result. If both objects set a member, the value of the
// second object takes precedence, even if it is null. MergeOverlay can therefore join two merge patches.
func MergeOverlay(base, top map[string]any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, base)
	for key, value := range top {
		below, isObject := out[key].(map[string]any)
		above, isToo := value.(map[string]any)
		if isObject && isToo {
			value = MergeOverlay(below, above)
		}
		out[key] = value
	}
	return out
}

// Fill returns a copy of the first object. Members that are missing, zero or empty in the first object get the values
// of the second object. Fill does not merge lists: a list that is not empty stays unchanged.
func Fill(base, more map[string]any) map[string]any {
	out := maps.Clone(base)
	for key, value := range more {
		have, exists := out[key]
		below, isObject := have.(map[string]any)
		above, isToo := value.(map[string]any)
		switch {
		case isObject && isToo:
			out[key] = Fill(below, above)
		case !exists || len(below) == 0 && IsZero(have):
			out[key] = value
		}
	}
	return out
}
