// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"maps"
	"slices"
)

// Difference describes a value that differs between two documents. Old is nil if the value does not exist in the first
// document, and New is nil if it does not exist in the second.
type Difference struct {
	Path     Path
	Old, New any
}

// Diff returns the values that differ between two documents, sorted by their paths. It compares objects key by key, and
// lists of the same length item by item. An explicit null equals an absent value.
func Diff(old, now any) []Difference { return diffAt(nil, old, now) }

// diffAt is like Diff, but for the values at a path.
func diffAt(path Path, old, now any) []Difference {
	if Equal(old, now) {
		return nil
	}
	var out []Difference
	oldObject, wasObject := old.(map[string]any)
	newObject, isObject := now.(map[string]any)
	oldList, wasList := old.([]any)
	newList, isList := now.([]any)
	switch {
	case wasObject && isObject:
		for _, key := range sortKeys(oldObject, newObject) {
			out = append(out, diffAt(append(path, key), oldObject[key], newObject[key])...)
		}
	case wasList && isList && len(oldList) == len(newList):
		for i := range oldList {
			out = append(out, diffAt(append(path, i), oldList[i], newList[i])...)
		}
	default:
		out = []Difference{{Path: slices.Clone(path), Old: old, New: now}}
	}
	return out
}

// sortKeys returns the sorted keys of two objects.
func sortKeys(a, b map[string]any) []string {
	both := map[string]any{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}
