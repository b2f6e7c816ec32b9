// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// These limits bound the work that a path can cause. The parser recurses once per character, and every descent and
// every union multiplies the number of results. The largest objects that an API server stores have about 100 000
// values.
const (
	maxLength   = 1024
	maxDescents = 2
	maxCommas   = 8
	maxSteps    = 1 << 18
	maxDepth    = 256
)

// ErrNotFound means that a path leads to no value of an object.
var ErrNotFound = errors.New("not found")

// ErrLimit means that a path needs more work on an object than is allowed. A path that begins at a field of the
// object, or has fewer descents (..) and unions, needs less.
var ErrLimit = errors.New("exceeds a limit")

// Path is a parsed path. It is immutable and may be used concurrently.
type Path struct {
	text  string
	nodes []jsonpath.Node
}

// String returns the text that was parsed.
func (p *Path) String() string { return p.text }

// Parse parses a path. Braces and the leading dot or "$" are optional. Parse returns an error if the text is empty,
// longer than 1024 bytes, has more than two descents (..) or eight commas, is not a valid path, or is a template that
// contains more than a path.
func Parse(text string) (*Path, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	if err := onlyPath(root.Nodes); err != nil {
		return nil, err
	}
	return &Path{text: text, nodes: root.Nodes}, nil
}

// ParseKey splits a dotted key such as "database.connection.url" into its parts. A dot inside a part is escaped:
// "labels.app\.kubernetes\.io/name". ParseKey returns an error where Parse does, and if the key contains anything but
// names of fields.
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

// Find returns every value that the path leads to, at least one. Values of a list are in its order, and fields of an
// object are ordered by name. A value may be nil (JSON null). The values belong to the object, so copy them before
// changing them. The object must consist of JSON values.
//
// Find wraps ErrNotFound if there is no value, and ErrLimit if finding the values takes too many steps or leads too
// deep. It wraps the cause of the context if that ends first. The last two errors name the path.
func (p *Path) Find(ctx context.Context, object map[string]any) ([]any, error) {
	e := evaluation{ctx: ctx, left: maxSteps}
	values, err := e.list([]any{object}, p.nodes)
	switch {
	case e.ended != nil:
		return nil, fmt.Errorf("jsonPath %q %w", p.text, e.ended)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotFound, err)
	case len(values) == 0:
		return nil, ErrNotFound
	}
	return values, nil
}

// parse returns the nodes between the braces.
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
	parser, err := jsonpath.Parse("path", braced(text))
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

// braced returns the path with braces and a beginning.
func braced(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	if !strings.HasPrefix(text, ".") && !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "$") {
		text = "." + text
	}
	return "{" + text + "}"
}

// onlyPath refuses the nodes of templates, which are constants and ranges.
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
