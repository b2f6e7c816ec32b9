// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"math"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// valueError names a place whose value JSON cannot express, and keeps quiet about the value.
type valueError struct {
	path string
	kind string
}

func (e *valueError) Error() string {
	return fmt.Sprintf("%s: a value of the type %s cannot be expressed in JSON", e.path, e.kind)
}

// normal returns a deep copy of a body in which everything is a plain JSON value.
func normal(body map[string]any) (map[string]any, error) {
	value, err := normalValue("", body)
	out, _ := value.(map[string]any)
	if out == nil {
		out = map[string]any{}
	}
	return out, err
}

// normalValue makes a deep copy out of nil, bool, string, int64, float64, []any and map[string]any only.
func normalValue(path string, value any) (any, error) {
	switch v := value.(type) {
	case nil, bool, string, int64:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &valueError{path: path, kind: "float64 (no number)"}
		}
		return v, nil
	case map[string]any:
		return normalObject(path, v)
	case []any:
		return normalList(path, v)
	}
	return recode(path, value)
}

func normalObject(path string, members map[string]any) (any, error) {
	if members == nil {
		return nil, nil
	}
	out := make(map[string]any, len(members))
	for key, member := range members {
		plain, err := normalValue(joinPath(path, pathElement(key)), member)
		if err != nil {
			return nil, err
		}
		out[key] = plain
	}
	return out, nil
}

func normalList(path string, items []any) (any, error) {
	if items == nil {
		return nil, nil
	}
	out := make([]any, len(items))
	for i, item := range items {
		plain, err := normalValue(joinPath(path, fmt.Sprintf("[%d]", i)), item)
		if err != nil {
			return nil, err
		}
		out[i] = plain
	}
	return out, nil
}

// recode takes the way through JSON text, for all other Go types.
func recode(path string, value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, &valueError{path: path, kind: fmt.Sprintf("%T", value)}
	}
	var out any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, &valueError{path: path, kind: fmt.Sprintf("%T", value)}
	}
	return out, nil
}

// cloneValue copies a plain JSON value deeply.
func cloneValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, member := range v {
			out[key] = cloneValue(member)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = cloneValue(item)
		}
		return out
	}
	return value
}

// isZero tells that a Go type shows the value also where nothing is stored.
func isZero(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, member := range v {
			if !isZero(member) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	case string:
		return v == ""
	case bool:
		return !v
	}
	return value == nil || equal(value, int64(0))
}
