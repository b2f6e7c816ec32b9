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

// diffChildren returns the paths of the fields in which two sets of children differ. It returns at most `limit` paths.
// The paths never contain values of fields.
func diffChildren(before, after map[string][]byte, limit int) []string {
	var paths []string
	for _, name := range unionKeys(before, after) {
		old, was := before[name]
		now, is := after[name]
		var a, b map[string]any
		switch {
		case was != is:
			paths = append(paths, name+" (in only some of the responses)")
		case !bytes.Equal(old, now) && utiljson.Unmarshal(old, &a) == nil && utiljson.Unmarshal(now, &b) == nil:
			paths = append(paths, diffFields(name+" ", a, b)...)
		}
	}
	if len(paths) == 0 && !maps.EqualFunc(before, after, bytes.Equal) {
		paths = append(paths, "(the field is nested too deeply to be named)")
	}
	return paths[:min(len(paths), limit)]
}

// freeKeys are the names of fields whose values are maps with arbitrary keys.
var freeKeys = map[string]bool{"annotations": true, "labels": true, "matchLabels": true, "data": true, "binaryData": true}

// diffFields returns the paths of the fields in which two maps at a path differ.
func diffFields(path string, a, b map[string]any) []string {
	var paths []string
	for _, key := range unionKeys(a, b) {
		old, was := a[key]
		now, is := b[key]
		below := path + field(key)
		if freeKeys[path[strings.LastIndexByte(path, '.')+1:]] {
			below = path + "[" + key + "]"
		}
		if was != is {
			paths = append(paths, below)
		} else {
			paths = append(paths, diffValues(below, old, now)...)
		}
	}
	return paths
}

// diffValues is like diffFields, but for two values of any type.
func diffValues(path string, a, b any) []string {
	aMap, isMap := a.(map[string]any)
	bMap, isMapToo := b.(map[string]any)
	aList, isList := a.([]any)
	bList, isListToo := b.([]any)
	switch {
	case isMap && isMapToo:
		return diffFields(path, aMap, bMap)
	case isList && isListToo && len(aList) == len(bList):
		var paths []string
		for i := range aList {
			paths = append(paths, diffValues(fmt.Sprintf("%s[%d]", path, i), aList[i], bList[i])...)
		}
		return paths
	case !reflect.DeepEqual(a, b):
		return []string{path}
	}
	return nil
}

// unionKeys returns the sorted keys of both maps.
func unionKeys[V any](a, b map[string]V) []string {
	all := map[string]V{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}
