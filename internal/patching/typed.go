// SPDX-License-Identifier: Apache-2.0

package patching

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	kjson "sigs.k8s.io/json"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

// Typed converts a function that changes a value of a Go type to a Func.
func Typed[T any](fn func(*T) error) Func {
	return func(body map[string]any) error {
		value := new(T)
		if err := decodeInto(body, value); err != nil {
			return err
		}
		before, err := Encode(value)
		if err != nil {
			return err
		}
		if err := fn(value); err != nil {
			return err
		}
		after, err := Encode(value)
		if err != nil {
			return err
		}
		mergeObject(body, before, after, reflect.TypeFor[T]())
		return nil
	}
}

// decodeInto decodes a body. Its errors contain no content of the body, unlike those of the decoder.
func decodeInto(body map[string]any, into any) error {
	data, err := json.Marshal(body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, into)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return &jsondiff.FieldError{Path: wrong.Field, Reason: fmt.Sprintf("does not fit %T", into)}
	}
	if err != nil {
		return fmt.Errorf("the body does not fit %T", into)
	}
	return nil
}

// Encode returns the JSON form of a value. It returns an error if the result is not a JSON object. It removes all nulls
// inside objects.
func Encode(value any) (map[string]any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be expressed in JSON", value)
	}
	body, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%T is not a JSON object", value)
	}
	jsondiff.DropNulls(body)
	return body, nil
}

// mergeObject computes the differences between `before` and `after`, two JSON forms of a value of type t, and makes the
// same changes to `raw` in place. Members of `raw` that the type t does not declare are kept.
func mergeObject(raw, before, after map[string]any, t reflect.Type) {
	for key, have := range before {
		if _, kept := after[key]; kept {
			continue
		}
		stored, _ := raw[key].(map[string]any)
		if known, isObject := have.(map[string]any); isObject && stored != nil && getMember(t, key).inline {
			if mergeObject(stored, known, nil, getMember(t, key).elem); len(stored) > 0 {
				continue
			}
		}
		delete(raw, key)
	}
	for key, want := range after {
		have, existed := before[key]
		if existed && jsondiff.Equal(have, want) {
			continue
		}
		raw[key] = mergeValue(raw[key], have, want, getMember(t, key))
	}
}

// mergeValue returns the new value of a member. It may change the raw value in place and return it.
func mergeValue(raw, before, after any, member memberType) any {
	switch want := after.(type) {
	case map[string]any:
		have, wasObject := before.(map[string]any)
		stored, isObject := raw.(map[string]any)
		if isObject && (wasObject || before == nil) {
			mergeObject(stored, have, want, member.elem)
			return stored
		}
	case []any:
		have, _ := before.([]any)
		stored, _ := raw.([]any)
		if len(stored) == len(have) && len(have) > 0 {
			return mergeList(stored, have, want, memberType{elem: getMember(member.elem, "").elem, mergeKey: member.mergeKey})
		}
	}
	return after
}

// mergeList returns the new items of a list. If an item still exists, mergeList makes the change in the raw form of the
// item.
func mergeList(raw, before, after []any, item memberType) []any {
	out := make([]any, len(after))
	for j, i := range jsondiff.Match(before, after, item.mergeKey) {
		switch {
		case i < 0:
			out[j] = after[j]
		case jsondiff.Equal(before[i], after[j]):
			out[j] = raw[i]
		default:
			out[j] = mergeValue(raw[i], before[i], after[j], memberType{elem: item.elem, mergeKey: defaultMergeKey})
		}
	}
	return out
}
