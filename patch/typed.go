// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"errors"
	"fmt"

	kjson "sigs.k8s.io/json"
)

// Typed makes a Func out of a function on a Go type, usually that of the object:
//
//	p.Append(patch.Typed(func(cm *corev1.ConfigMap) error { … }))
//
// What the type does not know stays as it is in the body, in lists too; only what fn changed is changed.
// Setting a field to a value that its tag leaves out (omitempty) removes it.
// The Func's errors: fn's own; a body that does not fit the type, and a result that JSON cannot express.
func Typed[T any](fn func(*T) error) Func {
	return func(body map[string]any) error {
		value := new(T)
		if err := decodeInto(body, value); err != nil {
			return err
		}
		before, err := encodeFrom(value)
		if err != nil {
			return err
		}
		if err := fn(value); err != nil {
			return err
		}
		after, err := encodeFrom(value)
		if err != nil {
			return err
		}
		carryObject(body, before, after)
		return nil
	}
}

// decodeInto never tells the content of the body: the errors of the decoder may.
func decodeInto(body map[string]any, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("the body cannot be expressed in JSON")
	}
	err = kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		return fmt.Errorf("%s does not fit %T", wrong.Field, into)
	}
	if err != nil {
		return fmt.Errorf("the body does not fit %T", into)
	}
	return nil
}

func encodeFrom(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be expressed in JSON", value)
	}
	body, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%T is no JSON object", value)
	}
	dropNulls(body)
	return body, nil
}

// carryObject does to raw, in place, what makes after out of before.
func carryObject(raw, before, after map[string]any) {
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(raw, key)
		}
	}
	for key, want := range after {
		have, existed := before[key]
		if existed && equal(have, want) {
			continue
		}
		raw[key] = carry(raw[key], have, want)
	}
}

func carry(raw, before, after any) any {
	switch want := after.(type) {
	case map[string]any:
		have, _ := before.(map[string]any)
		stored, isObject := raw.(map[string]any)
		if !isObject {
			stored = map[string]any{}
		}
		if have == nil && isObject {
			return want // the type could not read what is stored here
		}
		carryObject(stored, have, want)
		return stored
	case []any:
		have, _ := before.([]any)
		stored, _ := raw.([]any)
		if len(stored) == len(have) && len(have) > 0 {
			return carryList(stored, have, want)
		}
	}
	return after
}

// carryList keeps the stored items of those that stayed, and changes those that were changed in place.
func carryList(raw, before, after []any) []any {
	out := make([]any, 0, len(after))
	for _, run := range align(before, after) {
		switch {
		case run.same:
			out = append(out, raw[run.from:run.fromEnd]...)
		case run.fromEnd-run.from == run.toEnd-run.to:
			for i := range run.fromEnd - run.from {
				out = append(out, carry(raw[run.from+i], before[run.from+i], after[run.to+i]))
			}
		default:
			out = append(out, after[run.to:run.toEnd]...)
		}
	}
	return out
}
