// SPDX-License-Identifier: Apache-2.0

package jsondiff

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Path leads to a value in a document. Its elements are the keys of objects, of type string, and the indices of list
// items, of type int.
type Path []any

// String returns the path as text, for example spec.ports[0].port.
func (p Path) String() string { return joinElements(p) }

// PathOf returns the path that consists of the given keys, as text.
func PathOf(keys ...string) string { return joinElements(keys) }

func joinElements[E any](elements []E) string {
	path := ""
	for _, element := range elements {
		path = joinPath(path, formatElement(element))
	}
	return path
}

var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func formatElement(element any) string {
	key, isKey := element.(string)
	switch {
	case !isKey:
		return fmt.Sprintf("[%v]", element)
	case plainKey.MatchString(key):
		return key
	}
	return fmt.Sprintf("[%q]", key)
}

func joinPath(head, tail string) string {
	if head == "" || tail == "" || strings.HasPrefix(tail, "[") {
		return head + tail
	}
	return head + "." + tail
}

// FieldError reports a field that cannot be changed as requested. Use errors.As to find it.
type FieldError struct {
	// Path is the JSON path of the field, for example spec.config.foo.
	Path string
	// Reason describes the problem. It never contains the value.
	Reason string
}

func (e *FieldError) Error() string { return e.Path + ": " + e.Reason }

// PrependPath prepends a path to the path in a *FieldError. It returns any other error unchanged.
func PrependPath(path string, err error) error {
	if field, ok := errors.AsType[*FieldError](err); ok {
		return &FieldError{Path: joinPath(path, field.Path), Reason: field.Reason}
	}
	return err
}
