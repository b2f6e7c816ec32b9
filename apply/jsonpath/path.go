// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// These limits bound the work that a path can cause. The parser calls itself once per character. Every descent (..) and
// every union multiplies the number of results. For comparison: the largest objects that an API server stores have
// about 100 000 values.
const (
	maxLength   = 1024
	maxDescents = 2
	maxCommas   = 8
	maxSteps    = 1 << 18
	maxDepth    = 256
)

// ErrNotFound means that a path selects no value of an object.
var ErrNotFound = errors.New("not found")

// ErrLimit means that the evaluation of a path takes too many steps, or that the object is nested too deeply. The
// evaluation takes fewer steps if the path begins with a field name, or if it contains fewer descents (..) and unions.
var ErrLimit = errors.New("exceeds a limit")

// Path is a parsed path. It is immutable and may be used concurrently.
type Path struct {
	text  string
	nodes []jsonpath.Node
}

// String returns the text from which the path was parsed.
func (p *Path) String() string { return p.text }

// Parse parses a path. Braces and the leading dot or "$" are optional. Parse returns an error if the text is not
// exactly one valid path. It also returns an error if the text is longer than 1024 bytes, or if it contains more than
// two descents (..) or more than eight commas.
func Parse(text string) (*Path, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := checkOnlyPath(root.Nodes); err != nil {
		return nil, err
	}
	return &Path{text: text, nodes: root.Nodes}, nil
}

// ParseKey splits a dotted key such as "database.connection.url" into its parts. A dot inside a part must be escaped,
// as in "labels.app\.kubernetes\.io/name". ParseKey returns the same errors as Parse. It also returns an error if a
// part is not a field name.
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

// Find returns all values that the path selects. If the path selects no value, Find returns an error. Values from a
// list have the order of the list. Values from the fields of an object are ordered by field name. A value may be nil
// (JSON null). The values are part of the object, so the caller must copy them before changing them. The object must
// consist of JSON values.
//
// The error wraps ErrNotFound if the path selects no value. It wraps ErrLimit if the search takes too many steps or the
// object is nested too deeply. It wraps context.Cause(ctx) if the context ends first. Errors that wrap ErrLimit or
// context.Cause(ctx) contain the path.
func (p *Path) Find(ctx context.Context, object map[string]any) ([]any, error) {
	e := evaluation{ctx: ctx, left: maxSteps}
	values, err := e.evalList([]any{object}, p.nodes)
	switch {
	case e.stopErr != nil:
		return nil, fmt.Errorf("jsonPath %q %w", p.text, e.stopErr)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	case len(values) == 0:
		return nil, ErrNotFound
	}
	return values, nil
}

// parse parses the text and returns the nodes between the braces.
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
	parser, err := jsonpath.Parse("path", addBraces(text))
	if err != nil {
		return nil, fmt.Errorf("is not a JSON path: %w", err)
	}
	if nodes := parser.Root.Nodes; len(nodes) == 1 {
		if list, ok := nodes[0].(*jsonpath.ListNode); ok {
			return list, nil
		}
	}
	return nil, errors.New("must be one JSON path")
}

// addBraces returns the path with braces and a leading dot, if these are missing.
func addBraces(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "$") {
		text = "." + text
	}
	return "{" + text + "}"
}

// checkOnlyPath returns an error if one of the nodes is not part of a path but of a template, such as a constant or a
// range.
func checkOnlyPath(nodes []jsonpath.Node) error {
	for _, node := range nodes {
		switch node.Type() {
		case jsonpath.NodeField, jsonpath.NodeArray, jsonpath.NodeFilter, jsonpath.NodeWildcard, jsonpath.NodeRecursive:
		case jsonpath.NodeUnion:
			for _, list := range node.(*jsonpath.UnionNode).Nodes {
				if err := checkOnlyPath(list.Nodes); err != nil {
					return err
				}
			}
		default:
			return fmt.Errorf("is not a JSON path: has a %s", strings.TrimPrefix(node.Type().String(), "Node"))
		}
	}
	return nil
}
