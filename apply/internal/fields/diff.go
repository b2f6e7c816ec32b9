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
	return differencesBelow("", withoutBookkeeping(old), withoutBookkeeping(now))
}

// differencesBelow compares the fields at a path in two objects.
func differencesBelow(path string, old, now any) []Difference {
	var out []Difference
	for _, one := range jsondiff.Diff(old, now) {
		out = append(out, Difference{Path: path + pathText(one.Path), Old: one.Old, New: one.New})
	}
	return out
}

// bookkeeping lists the metadata that the API server maintains itself.
var bookkeeping = []string{"managedFields", "resourceVersion", "generation"}

// withoutBookkeeping returns a copy of an object without the fields that the API server maintains itself.
func withoutBookkeeping(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	if metadata, isObject := out["metadata"].(map[string]any); isObject {
		metadata = maps.Clone(metadata)
		for _, field := range bookkeeping {
			delete(metadata, field)
		}
		out["metadata"] = metadata
	}
	return out
}

// pathText returns a path as text, for example .spec.ports[0].port. Keys that contain dots or slashes are quoted.
func pathText(path jsondiff.Path) string {
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

// Unmatched compares the wanted object with the live object. It returns the paths of the wanted fields that the live
// object does not contain with the same value. It compares only the field at the path `part`. It ignores direct
// children of this field whose names are in the set `except`.
func Unmatched(live, want map[string]any, part string, except map[string]bool) []string {
	var from, to any = withoutBookkeeping(live), withoutBookkeeping(want)
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
	for _, one := range differencesBelow(part, from, jsondiff.Lay(from, wanted)) {
		out = append(out, one.Path)
	}
	return out
}
