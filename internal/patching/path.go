// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FirstDifference returns the JSON path of the first difference in the order of the keys, "" if there is none.
func FirstDifference(a, b any) string {
	if Equal(a, b) {
		return ""
	}
	if left, right, lists := both[[]any](a, b); lists && len(left) == len(right) {
		for i := range left {
			if !Equal(left[i], right[i]) {
				return joinPath("["+strconv.Itoa(i)+"]", FirstDifference(left[i], right[i]))
			}
		}
	}
	left, right, _ := both[map[string]any](a, b)
	keys := maps.Clone(left)
	maps.Copy(keys, right)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		have, inLeft := left[key]
		want, inRight := right[key]
		if inLeft != inRight || !Equal(have, want) {
			return joinPath(pathElement(key), FirstDifference(have, want))
		}
	}
	return ""
}

// both returns two values as one type, if they are of it.
func both[T any](a, b any) (left, right T, ok bool) {
	first, isLeft := a.(T)
	second, isRight := b.(T)
	if isLeft && isRight {
		return first, second, true
	}
	return left, right, false
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func pathElement(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return fmt.Sprintf("[%q]", key)
}

// PathOf writes keys as one path.
func PathOf(keys ...string) string {
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
