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

// lookEvery is the number of steps between two checks of the context.
const lookEvery = 1024

// evaluation evaluates a path that client-go has parsed. The results are the same as those of client-go. In addition,
// an evaluation counts the values that it visits, and stops when it has visited too many.
type evaluation struct {
	ctx   context.Context
	left  int   // remaining steps, initially maxSteps
	next  int   // the context is checked again when fewer steps than this remain
	ended error // the reason why the evaluation was stopped
}

// spend counts steps. If it returns an error, the evaluation must end.
func (e *evaluation) spend(steps int) error {
	if e.left -= steps; e.left < 0 && e.ended == nil {
		e.ended = fmt.Errorf("%w: its evaluation takes more than %d steps in this object", ErrLimit, maxSteps)
	}
	if e.ended == nil && (e.next == 0 || e.left < e.next) {
		e.next = e.left - lookEvery
		if e.ctx.Err() != nil {
			e.ended = fmt.Errorf("was stopped: %w", context.Cause(e.ctx))
		}
	}
	return e.ended
}

// list evaluates the nodes in order. Each node is applied to the values that the previous node found.
func (e *evaluation) list(values []any, nodes []jsonpath.Node) ([]any, error) {
	var err error
	for _, node := range nodes {
		if err = e.spend(1 + len(values)); err != nil {
			return nil, err
		}
		if values, err = e.node(values, node); err != nil {
			return nil, err
		}
	}
	return values, nil
}

func (e *evaluation) node(values []any, node jsonpath.Node) ([]any, error) {
	switch node := node.(type) {
	case *jsonpath.FieldNode:
		return field(values, node.Value)
	case *jsonpath.ArrayNode:
		return e.array(values, node)
	case *jsonpath.FilterNode:
		return e.filter(values, node)
	case *jsonpath.UnionNode:
		return e.union(values, node)
	case *jsonpath.WildcardNode:
		return e.wildcard(values)
	case *jsonpath.RecursiveNode:
		return e.descend(nil, values, 0)
	case *jsonpath.ListNode:
		return e.list(values, node.Nodes)
	}
	constant, err := constantOf(node)
	return slices.Repeat([]any{constant}, len(values)), err
}

// constantOf returns the value of a constant. Constants occur only in filters.
func constantOf(node jsonpath.Node) (any, error) {
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

// field returns the named field of each value. It skips values that do not have the field, and returns an error if none
// of them has it.
func field(values []any, name string) ([]any, error) {
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

func (e *evaluation) array(values []any, node *jsonpath.ArrayNode) ([]any, error) {
	out := []any{}
	for _, value := range values {
		if value == nil {
			continue
		}
		items, isList := value.([]any)
		if !isList {
			return nil, errors.New("cannot index a value that is not a list")
		}
		from, to, step, err := slice(node.Params, len(items))
		if err != nil {
			return nil, err
		}
		if err := e.spend((to - from) / step); err != nil {
			return nil, err
		}
		for i := from; i < to && i >= from; i += step {
			out = append(out, items[i])
		}
	}
	return out, nil
}

// slice returns the start, the end and the step of an index expression for a list of the given length. Negative indexes
// count from the end of the list.
func slice(params [3]jsonpath.ParamsEntry, length int) (from, to, step int, err error) {
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

func (e *evaluation) union(values []any, node *jsonpath.UnionNode) ([]any, error) {
	out := []any{}
	for _, part := range node.Nodes {
		found, err := e.list(values, part.Nodes)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (e *evaluation) wildcard(values []any) ([]any, error) {
	out := []any{}
	for _, value := range values {
		inside := parts(value)
		if err := e.spend(len(inside)); err != nil {
			return nil, err
		}
		out = append(out, inside...)
	}
	return out, nil
}

// descend finds all non-empty objects and lists among the values and inside them, at any depth, and appends them to
// `out`. Each object or list precedes its contents.
func (e *evaluation) descend(out, values []any, depth int) ([]any, error) {
	if err := e.spend(len(values)); err != nil {
		return nil, err
	}
	for _, value := range values {
		inside := parts(value)
		if len(inside) == 0 {
			continue
		}
		if depth >= maxDepth {
			e.ended = fmt.Errorf("%w: the object is nested more than %d levels deep", ErrLimit, maxDepth)
			return nil, e.ended
		}
		var err error
		if out, err = e.descend(append(out, value), inside, depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parts returns the direct children of an object or a list.
func parts(value any) []any {
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

func (e *evaluation) filter(values []any, node *jsonpath.FilterNode) ([]any, error) {
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
	if err := e.spend(1); err != nil {
		return false, err
	}
	left, err := e.list([]any{item}, node.Left.Nodes)
	if node.Operator == "exists" {
		return err == nil && len(left) > 0, e.ended
	}
	if err != nil || len(left) == 0 {
		return false, err
	}
	right, err := e.list([]any{item}, node.Right.Nodes)
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
