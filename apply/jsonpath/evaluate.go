// SPDX-License-Identifier: Apache-2.0

package jsonpath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/third_party/forked/golang/template"
	"k8s.io/client-go/util/jsonpath"
)

// checkInterval is the number of steps between two checks of the context.
const checkInterval = 1024

// evaluation evaluates a path that client-go has parsed. The results are the same as those of client-go. In addition,
// an evaluation counts the values that it visits, and stops when it has visited too many.
type evaluation struct {
	ctx       context.Context
	left      int   // remaining steps, initially maxSteps
	nextCheck int   // the context is checked again when fewer steps than this remain
	stopErr   error // the reason why the evaluation was stopped
}

// addSteps counts steps. If it returns an error, the evaluation must end.
func (e *evaluation) addSteps(steps int) error {
	if e.left -= steps; e.left < 0 && e.stopErr == nil {
		e.stopErr = fmt.Errorf("%w: its evaluation takes more than %d steps in this object", ErrLimit, maxSteps)
	}
	if e.stopErr == nil && (e.nextCheck == 0 || e.left < e.nextCheck) {
		e.nextCheck = e.left - checkInterval
		if e.ctx.Err() != nil {
			e.stopErr = fmt.Errorf("was stopped: %w", context.Cause(e.ctx))
		}
	}
	return e.stopErr
}

// evalList evaluates the nodes in order. Each node is applied to the values that the previous node found.
func (e *evaluation) evalList(values []any, nodes []jsonpath.Node) ([]any, error) {
	var err error
	for _, node := range nodes {
		if err = e.addSteps(1 + len(values)); err != nil {
			return nil, err
		}
		if values, err = e.evalNode(values, node); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e *evaluation) evalNode(values []any, node jsonpath.Node) ([]any, error) {
	switch node := node.(type) {
	case *jsonpath.FieldNode:
		return getFields(values, node.Value)
	case *jsonpath.ArrayNode:
		return e.evalArray(values, node)
	case *jsonpath.FilterNode:
		return e.evalFilter(values, node)
	case *jsonpath.UnionNode:
		return e.evalUnion(values, node)
	case *jsonpath.WildcardNode:
		return e.evalWildcard(values)
	case *jsonpath.RecursiveNode:
		return e.findDescendants(nil, values, 0)
	case *jsonpath.ListNode:
		return e.evalList(values, node.Nodes)
	}
	constant, err := getConstant(node)
	return slices.Repeat([]any{constant}, len(values)), err
}

// getConstant returns the value of a constant. Constants occur only in filters.
func getConstant(node jsonpath.Node) (any, error) {
	switch node := node.(type) {
	case *jsonpath.TextNode:
		return node.Text, nil
	case *jsonpath.IntNode:
		return node.Value, nil
	case *jsonpath.FloatNode:
		return node.Value, nil
	case *jsonpath.BoolNode:
		return node.Value, nil
	}
	return nil, fmt.Errorf("%s has no value", node)
}

// getFields returns the named field of each value. It skips values that do not have the field, and returns an error if
// none of them has it.
func getFields(values []any, name string) ([]any, error) {
	out := []any{}
	for _, value := range values {
		fields, _ := value.(map[string]any)
		if found, ok := fields[name]; ok {
			out = append(out, found)
		}
	}
	if len(out) == 0 && len(values) > 0 {
		return nil, fmt.Errorf("%s is not found", name)
	}
	return out, nil
}

func (e *evaluation) evalArray(values []any, node *jsonpath.ArrayNode) ([]any, error) {
	out := []any{}
	for _, value := range values {
		if value == nil {
			continue
		}
		items, isList := value.([]any)
		if !isList {
			return nil, errors.New("cannot index a value that is not a list")
		}
		from, to, step, err := parseSlice(node.Params, len(items))
		if err != nil {
			return nil, err
		}
		if err := e.addSteps((to - from) / step); err != nil {
			return nil, err
		}
		for i := from; i < to && i >= from; i += step {
			out = append(out, items[i])
		}
	}
	return out, nil
}

// parseSlice returns the start, the end and the step of an index expression for a list of the given length. Negative
// indexes count from the end of the list.
func parseSlice(params [3]jsonpath.ParamsEntry, length int) (from, to, step int, err error) {
	to, step = length, 1
	if params[0].Known {
		if from = params[0].Value; from < 0 {
			from += length
		}
	}
	if params[1].Known {
		if to = params[1].Value; to < 0 || to == 0 && params[1].Derived {
			to += length
		}
	}
	if params[2].Known {
		step = params[2].Value
	}
	switch {
	case from == to:
		return 0, 0, 1, nil
	case from < 0 || from > to || to > length:
		return 0, 0, 0, fmt.Errorf("the indexes %d to %d are out of range for a list of length %d", from, to, length)
	case step <= 0:
		return 0, 0, 0, errors.New("the step must be greater than 0")
	}
	return from, to, step, nil
}

func (e *evaluation) evalUnion(values []any, node *jsonpath.UnionNode) ([]any, error) {
	out := []any{}
	for _, part := range node.Nodes {
		found, err := e.evalList(values, part.Nodes)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (e *evaluation) evalWildcard(values []any) ([]any, error) {
	out := []any{}
	for _, value := range values {
		inside := listChildren(value)
		if err := e.addSteps(len(inside)); err != nil {
			return nil, err
		}
		out = append(out, inside...)
	}
	return out, nil
}

// findDescendants finds all non-empty objects and lists among the values and inside them, at any depth, and appends
// them to `out`. Each object or list precedes its contents.
func (e *evaluation) findDescendants(out, values []any, depth int) ([]any, error) {
	if err := e.addSteps(len(values)); err != nil {
		return nil, err
	}
	for _, value := range values {
		inside := listChildren(value)
		if len(inside) == 0 {
			continue
		}
		if depth >= maxDepth {
			e.stopErr = fmt.Errorf("%w: the object is nested more than %d levels deep", ErrLimit, maxDepth)
			return nil, e.stopErr
		}
		var err error
		if out, err = e.findDescendants(append(out, value), inside, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// listChildren returns the direct children of an object or a list.
func listChildren(value any) []any {
	switch value := value.(type) {
	case []any:
		return value
	case map[string]any:
		out := make([]any, 0, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			out = append(out, value[key])
		}
		return out
	}
	return nil
}

func (e *evaluation) evalFilter(values []any, node *jsonpath.FilterNode) ([]any, error) {
	out := []any{}
	for _, value := range values {
		items, isList := value.([]any)
		if !isList {
			return nil, errors.New("cannot filter a value that is not a list")
		}
		for _, item := range items {
			matches, err := e.matches(item, node)
			if err != nil {
				return nil, err
			}
			if matches {
				out = append(out, item)
			}
		}
	}
	return out, nil
}

// matches reports whether a list item satisfies the condition of a filter.
func (e *evaluation) matches(item any, node *jsonpath.FilterNode) (bool, error) {
	if err := e.addSteps(1); err != nil {
		return false, err
	}
	left, err := e.evalList([]any{item}, node.Left.Nodes)
	if node.Operator == "exists" {
		return err == nil && len(left) > 0, e.stopErr
	}
	if err != nil || len(left) == 0 {
		return false, err
	}
	right, err := e.evalList([]any{item}, node.Right.Nodes)
	if err != nil || len(right) == 0 {
		return false, err
	}
	if len(left) > 1 || len(right) > 1 {
		return false, errors.New("a filter can only compare one value with one other value")
	}
	compare, found := comparisons[node.Operator]
	if !found {
		return false, fmt.Errorf("%q is not an operator", node.Operator)
	}
	return compare(left[0], right[0])
}

// comparisons contains the operators of filters that compare two values.
var comparisons = map[string]func(left, right any) (bool, error){
	"<":  template.Less,
	">":  template.Greater,
	"==": func(left, right any) (bool, error) { return template.Equal(left, right) },
	"!=": template.NotEqual,
	"<=": template.LessEqual,
	">=": template.GreaterEqual,
}
