// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"fmt"
	"regexp"
	"strings"
)

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func pathElement(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return fmt.Sprintf("[%q]", key)
}

// PathOf joins keys to a path.
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
