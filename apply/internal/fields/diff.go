// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"fmt"
	"maps"
	"strings"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Difference describes a field that differs between two objects. Old is nil if the field does not exist in the first
// object, and New is nil if it does not exist in the second.
type Difference struct {
	Path     string
	Old, New any
}

// Diff returns the fields that differ between two objects, in a fixed order. It ignores the fields that the API server
// maintains itself.
func Diff(old, now map[string]any) []Difference {
	return diffBelow("", withoutServerFields(old), withoutServerFields(now))
}

// diffBelow compares the fields at a path in two objects.
func diffBelow(path string, old, now any) []Difference {
	var out []Difference
	for _, one := range jsondiff.Diff(old, now) {
		out = append(out, Difference{Path: path + formatPath(one.Path), Old: one.Old, New: one.New})
	}
	return out
}

// serverFields lists the metadata that the API server maintains itself.
var serverFields = []string{"managedFields", "resourceVersion", "generation"}

// withoutServerFields returns a copy of an object without the fields that the API server maintains itself.
func withoutServerFields(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	if metadata, isObject := out["metadata"].(map[string]any); isObject {
		metadata = maps.Clone(metadata)
		for _, field := range serverFields {
			delete(metadata, field)
		}
		out["metadata"] = metadata
	}
	return out
}

// formatPath returns a path as text, for example .spec.ports[0].port. Keys that contain dots or slashes are quoted.
func formatPath(path jsondiff.Path) string {
	text := &strings.Builder{}
	for _, element := range path {
		key, isKey := element.(string)
		switch {
		case !isKey:
			fmt.Fprintf(text, "[%v]", element)
		case strings.ContainsAny(key, "./"):
			fmt.Fprintf(text, "[%q]", key)
		default:
			text.WriteString("." + key)
		}
	}
	return text.String()
}

// FindUnmatched compares the wanted object with the live object. It returns the paths of the wanted fields that the
// live object does not contain with the same value. It compares only the field at the path `part`. It ignores direct
// children of this field whose names are in the set `except`.
func FindUnmatched(live, want map[string]any, part string, except map[string]bool) []string {
	var from, to any = withoutServerFields(live), withoutServerFields(want)
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
	for _, one := range diffBelow(part, from, jsondiff.MergeWanted(from, wanted)) {
		out = append(out, one.Path)
	}
	return out
}
