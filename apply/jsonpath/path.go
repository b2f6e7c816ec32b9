// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// What bounds the work that a path can ask for: the parser recurses once per
// character, every descent and every union multiplies the number of results.
const (
	maxLength   = 1024
	maxDescents = 2
	maxCommas   = 8
)

// ErrNotFound says that a path leads to no value of an object.
var ErrNotFound = errors.New("not found")

// Path is a parsed path. It is immutable and may be used concurrently.
type Path struct {
	text   string
	parsed jsonpath.JSONPath
}

// String is the text that was parsed.
func (p *Path) String() string { return p.text }

// Parse reads a path. Braces and the leading dot or "$" are optional.
// Errors: empty, longer than 1024 bytes, with more than two descents (..) or
// eight commas, no valid path, or a template with more than a path in it.
func Parse(text string) (*Path, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := onlyPath(root.Nodes); err != nil {
		return nil, err
	}
	path := jsonpath.New("path")
	if err := path.Parse(template(text)); err != nil {
		return nil, err // parsed above: cannot happen
	}
	return &Path{text: text, parsed: *path}, nil
}

// ParseKey reads a dotted key such as "database.connection.url" into its parts;
// a dot inside a part is escaped: "labels.app\.kubernetes\.io/name".
// Errors: as Parse, and anything but names of fields.
func ParseKey(text string) ([]string, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, node := range root.Nodes {
		field, ok := node.(*jsonpath.FieldNode)
		if !ok || field.Value == "" {
			return nil, errors.New("must be names separated by dots")
		}
		parts = append(parts, field.Value)
	}
	if len(parts) == 0 {
		return nil, errors.New("must be names separated by dots")
	}
	return parts, nil
}

// Find gives every value that the path leads to, in the object's order, at
// least one. A value may be nil (JSON null). The values are the object's own:
// copy them before changing them.
// Errors: ErrNotFound, wrapped, when there is none.
func (p *Path) Find(object map[string]any) (values []any, err error) {
	defer func() {
		if v := recover(); v != nil { // the parser's reflection is not ours to trust
			values, err = nil, fmt.Errorf("%w: %v", ErrNotFound, v)
		}
	}()
	evaluation := p.parsed // a copy: evaluating changes it
	results, err := evaluation.FindResults(object)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, err.Error())
	}
	for _, result := range results {
		for _, value := range result {
			values = append(values, plain(value))
		}
	}
	if len(values) == 0 {
		return nil, ErrNotFound
	}
	return values, nil
}

// parse gives the nodes between the braces.
func parse(text string) (root *jsonpath.ListNode, err error) {
	defer func() {
		if v := recover(); v != nil {
			root, err = nil, fmt.Errorf("is not a JSON path: %v", v)
		}
	}()
	if text == "" {
		return nil, errors.New("must not be empty")
	}
	if len(text) > maxLength {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), maxLength)
	}
	if strings.Count(text, "..") > maxDescents || strings.Count(text, ",") > maxCommas {
		return nil, fmt.Errorf("has more than %d descents (..) or %d commas", maxDescents, maxCommas)
	}
	parser, err := jsonpath.Parse("path", template(text))
	if err != nil {
		return nil, fmt.Errorf("is not a JSON path: %w", err)
	}
	if len(parser.Root.Nodes) != 1 {
		return nil, errors.New("must be one JSON path")
	}
	list, ok := parser.Root.Nodes[0].(*jsonpath.ListNode)
	if !ok {
		return nil, errors.New("must be one JSON path")
	}
	return list, nil
}

// template is the path with braces and a beginning.
func template(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "$") {
		text = "." + text
	}
	return "{" + text + "}"
}

// onlyPath refuses the nodes of templates: constants and ranges.
func onlyPath(nodes []jsonpath.Node) error {
	for _, node := range nodes {
		switch node.Type() {
		case jsonpath.NodeField, jsonpath.NodeArray, jsonpath.NodeFilter, jsonpath.NodeWildcard, jsonpath.NodeRecursive:
		case jsonpath.NodeUnion:
			for _, list := range node.(*jsonpath.UnionNode).Nodes {
				if err := onlyPath(list.Nodes); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("is not a JSON path: has a %s", strings.TrimPrefix(node.Type().String(), "Node"))
		}
	}
	return nil
}

// plain is a JSON value: what a wildcard makes of a string becomes numbers.
func plain(value reflect.Value) any {
	if !value.IsValid() || !value.CanInterface() {
		return nil
	}
	if value.Kind() == reflect.Uint8 {
		return int64(value.Uint())
	}
	return value.Interface()
}
