// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// differences returns the paths of the fields in which two sets of children differ. It returns at most `limit` paths.
// The paths never contain values of fields.
func differences(before, after map[string][]byte, limit int) []string {
	d := &differ{limit: limit}
	for _, name := range union(before, after) {
		old, was := before[name]
		now, is := after[name]
		switch {
		case !was:
			d.add(name + " (in only some of the responses)")
		case !is:
			d.add(name + " (in only some of the responses)")
		case !bytes.Equal(old, now):
			var a, b map[string]any
			if utiljson.Unmarshal(old, &a) == nil && utiljson.Unmarshal(now, &b) == nil {
				d.maps(name+" ", a, b)
			}
		}
	}
	if len(d.paths) == 0 && !maps.EqualFunc(before, after, bytes.Equal) {
		d.add("(the field is nested too deeply to be named)")
	}
	return d.paths
}

// freeKeys are the names of fields whose values are maps with arbitrary keys.
var freeKeys = map[string]bool{"annotations": true, "labels": true, "matchLabels": true, "data": true, "binaryData": true}

// differ collects the paths of differing fields. The field `limit` is the maximum number of paths.
type differ struct {
	paths []string
	limit int
}

func (d *differ) add(path string) {
	if len(d.paths) < d.limit {
		d.paths = append(d.paths, path)
	}
}

func (d *differ) value(path string, a, b any) {
	aMap, isMap := a.(map[string]any)
	bMap, isMapToo := b.(map[string]any)
	aList, isList := a.([]any)
	bList, isListToo := b.([]any)
	switch {
	case isMap && isMapToo:
		d.maps(path, aMap, bMap)
	case isList && isListToo && len(aList) == len(bList):
		for i := range aList {
			d.value(fmt.Sprintf("%s[%d]", path, i), aList[i], bList[i])
		}
	case !reflect.DeepEqual(a, b):
		d.add(path)
	}
}

func (d *differ) maps(path string, a, b map[string]any) {
	for _, key := range union(a, b) {
		old, was := a[key]
		now, is := b[key]
		below := path + field(key)
		if freeKeys[path[strings.LastIndexByte(path, '.')+1:]] {
			below = path + "[" + key + "]"
		}
		if was != is {
			d.add(below)
			continue
		}
		d.value(below, old, now)
	}
}

// union returns the sorted keys of both maps.
func union[V any](a, b map[string]V) []string {
	all := map[string]bool{}
	for key := range a {
		all[key] = true
	}
	for key := range b {
		all[key] = true
	}
	return slices.Sorted(maps.Keys(all))
}
