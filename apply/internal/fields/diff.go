// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// Difference describes a field that differs between two objects. Old is nil if the field does not exist in the first
// object, and New is nil if it does not exist in the second.
type Difference struct {
	Path     string
	Old, New any
}

// bookkeeping lists the fields that the API server maintains itself.
var bookkeeping = []string{".metadata.managedFields", ".metadata.resourceVersion", ".metadata.generation", ".status"}

// Diff returns the fields that differ between two objects, in a fixed order. It ignores the fields that the API server
// maintains itself.
func Diff(old, now map[string]any) []Difference { return diffAt("", old, now) }

// diffAt returns the differences between two values that have the same path in two objects.
func diffAt(path string, old, now any) []Difference {
	if slices.Contains(bookkeeping, path) || equality.Semantic.DeepEqual(old, now) {
		return nil
	}
	var out []Difference
	oldMap, isMap := old.(map[string]any)
	newMap, isToo := now.(map[string]any)
	if isMap && isToo {
		both := maps.Clone(oldMap)
		maps.Copy(both, newMap)
		for _, key := range slices.Sorted(maps.Keys(both)) {
			out = append(out, diffAt(path+step(key), oldMap[key], newMap[key])...)
		}
		return out
	}
	oldList, isList := old.([]any)
	newList, isToo := now.([]any)
	if isList && isToo && len(oldList) == len(newList) {
		for i := range oldList {
			out = append(out, diffAt(fmt.Sprintf("%s[%d]", path, i), oldList[i], newList[i])...)
		}
		return out
	}
	return []Difference{{Path: path, Old: old, New: now}}
}

// step returns one element of a path. Keys that contain dots or slashes are quoted.
func step(key string) string {
	if strings.ContainsAny(key, "./") {
		return fmt.Sprintf("[%q]", key)
	}
	return "." + key
}

// Unmatched compares the wanted object with the live object. It returns the paths of the wanted fields that the live
// object does not contain with the same value. It compares only the field at the path `part`. It ignores direct
// children of this field whose names are in the set `except`.
func Unmatched(live, want map[string]any, part string, except map[string]bool) []string {
	var from, to any = live, want
	for name := range strings.SplitSeq(strings.Trim(part, "."), ".") {
		a, isMap := from.(map[string]any)
		b, isMapToo := to.(map[string]any)
		if part == "" || !isMap || !isMapToo || b[name] == nil {
			return nil
		}
		from, to = a[name], b[name]
	}
	wanted, isMap := to.(map[string]any)
	if !isMap {
		return nil
	}
	wanted = maps.Clone(wanted)
	maps.DeleteFunc(wanted, func(name string, _ any) bool { return except[name] })
	var out []string
	for _, one := range diffAt(part, from, Lay(from, wanted)) {
		out = append(out, one.Path)
	}
	return out
}
