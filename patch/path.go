// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// firstDifference returns the JSON path of the first difference in the order of the keys, "" if there
// is none.
func firstDifference(a, b any) string {
	if equal(a, b) {
		return ""
	}
	left, leftObject := a.(map[string]any)
	right, rightObject := b.(map[string]any)
	if leftObject && rightObject {
		return firstMemberDifference(left, right)
	}
	leftList, isList := a.([]any)
	rightList, areLists := b.([]any)
	if isList && areLists && len(leftList) == len(rightList) {
		for i := range leftList {
			if !equal(leftList[i], rightList[i]) {
				return joinPath(fmt.Sprintf("[%d]", i), firstDifference(leftList[i], rightList[i]))
			}
		}
	}
	return ""
}

func firstMemberDifference(a, b map[string]any) string {
	keys := slices.Collect(maps.Keys(a))
	for key := range b {
		if _, known := a[key]; !known {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		left, inLeft := a[key]
		right, inRight := b[key]
		if inLeft != inRight || !equal(left, right) {
			return joinPath(pathElement(key), firstDifference(left, right))
		}
	}
	return ""
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func pathElement(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return fmt.Sprintf("[%q]", key)
}

// pathOf writes keys as one path.
func pathOf(keys ...string) string {
	path := ""
	for _, key := range keys {
		path = joinPath(path, pathElement(key))
	}
	return path
}

func joinPath(head, tail string) string {
	if head == "" || tail == "" || strings.HasPrefix(tail, "[") {
		return head + tail
	}
	return head + "." + tail
}
