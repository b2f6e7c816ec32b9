// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// ListChangedValues compares values with those in the record. It returns the paths of the values that differ, such as
// "image.tag changed", "replicas added" or "debug removed", in alphabetical order. A list counts as one value. The result
// contains no values, because they may be secret.
func (r *Record) ListChangedValues(values map[string]any) []string {
	var out []string
	compareValues("", toPlainJSON(r.release.Config), toPlainJSON(values), &out)
	slices.Sort(out)
	return out
}

// toPlainJSON returns values as encoding/json decodes them, so that equal numbers are equal.
func toPlainJSON(values map[string]any) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(values)
	if err != nil {
		return out
	}
	_ = json.Unmarshal(raw, &out) // raw was just encoded
	return out
}

// compareValues adds the paths of the values below prefix that differ.
func compareValues(prefix string, before, after map[string]any, out *[]string) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for key := range keys {
		was, had := before[key]
		is, has := after[key]
		wasTable, hadTable := was.(map[string]any)
		isTable, hasTable := is.(map[string]any)
		switch path := prefix + key; {
		case hadTable && hasTable:
			compareValues(path+".", wasTable, isTable, out)
		case !has:
			*out = append(*out, path+" removed")
		case !had:
			*out = append(*out, path+" added")
		case !reflect.DeepEqual(was, is):
			*out = append(*out, path+" changed")
		}
	}
}
