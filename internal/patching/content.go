// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Func changes the raw body of an object in place.
type Func = func(body map[string]any) error

// Content describes a change of an object.
type Content struct {
	// Changes is a JSON merge patch.
	Changes map[string]any
	// Places contains paths of objects in Changes. At these paths, Changes contains changes of individual members, and
	// not a new value for the whole object.
	Places [][]string
	// Funcs run after the changes, each on the result of the previous one.
	Funcs []Func
}

// IsEmpty reports whether there is nothing to do.
func (c Content) IsEmpty() bool { return len(c.Changes) == 0 && len(c.Funcs) == 0 }

// ApplyTo applies the content to a body and returns the result. It does not change the given body.
func (c Content) ApplyTo(body map[string]any) (map[string]any, error) {
	start, err := jsondiff.NormalizeObject(body)
	if err != nil {
		return nil, err
	}
	return c.applyToBody(start)
}

// ApplyToCopy applies the content to a copy of obj and returns the copy.
func (c Content) ApplyToCopy(obj client.Object) (client.Object, error) {
	if isNil(obj) {
		return nil, errNotRead
	}
	body, err := ToBody(obj)
	if err != nil {
		return nil, err
	}
	wanted, err := c.applyToBody(body)
	if err != nil {
		return nil, err
	}
	if err := checkKnown(obj, wanted); err != nil {
		return nil, err
	}
	return ToObject(obj, wanted)
}

// applyToBody is like ApplyTo, but for a body that consists of plain JSON values.
func (c Content) applyToBody(body map[string]any) (map[string]any, error) {
	if err := c.checkPlaces(body); err != nil {
		return nil, err
	}
	out := jsondiff.ApplyMergePatch(body, c.Changes)
	for i, fn := range c.Funcs {
		work := jsondiff.DeepCopy(out)
		err := fn(work)
		if err == nil {
			out, err = jsondiff.NormalizeObject(work)
		}
		if err != nil {
			return nil, fmt.Errorf("patch function %d: %w", i, err)
		}
	}
	return out, nil
}

// checkPlaces returns an error if a path in Places leads through a list. A merge patch cannot change the items of a
// list. It would replace the whole list.
func (c Content) checkPlaces(body map[string]any) error {
	for _, path := range c.Places {
		at := body
		for depth, key := range path {
			if _, isList := at[key].([]any); isList && depth > 0 {
				return &jsondiff.FieldError{Path: jsondiff.PathOf(path[:depth+1]...), Reason: "is a list; only a function can change the items of a list"}
			}
			at = jsondiff.ObjectAt(at, key)
		}
	}
	return nil
}

// filterStatus returns the part of the content that changes the status.
func (c Content) filterStatus() Content {
	left := Content{Places: slices.Clone(c.Places)}
	if status, exists := c.Changes[fieldStatus]; exists {
		left.Changes = map[string]any{fieldStatus: status}
	}
	left.Places = slices.DeleteFunc(left.Places, func(path []string) bool { return path[0] != fieldStatus })
	for _, fn := range c.Funcs {
		left.Funcs = append(left.Funcs, limitToStatus(fn))
	}
	return left
}

// limitToStatus returns a function that runs fn and discards all changes except those to the status.
func limitToStatus(fn Func) Func {
	return func(body map[string]any) error {
		work := jsondiff.DeepCopy(body)
		if err := fn(work); err != nil {
			return err
		}
		if status, exists := work[fieldStatus]; exists {
			body[fieldStatus] = status
		} else {
			delete(body, fieldStatus)
		}
		return nil
	}
}
