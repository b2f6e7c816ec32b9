// SPDX-License-Identifier: Apache-2.0

package fields

import (
	"encoding/json"
	"unicode/utf8"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Clone returns the result of encoding an object as JSON and decoding it again. Unlike DeepCopy, it accepts all Go
// number types.
func Clone(object map[string]any) (map[string]any, error) {
	if out, ok := cloneMap(object, maxLevels); ok {
		return out, nil
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, err
	}
	return out, nil
}

// maxLevels is the maximum number of nested levels that are copied without JSON. The limit is necessary because copying
// a value that contains itself would never end.
const maxLevels = 100

// clone copies a value without JSON, which takes much less time. It returns false if the value has more levels than
// allowed, or if JSON would change the value.
func clone(value any, levels int) (any, bool) {
	switch value := value.(type) {
	case nil, bool, int64:
		return value, true
	case string:
		return value, utf8.ValidString(value)
	case map[string]any:
		return cloneMap(value, levels)
	case []any:
		return cloneList(value, levels)
	}
	return nil, false
}

func cloneMap(value map[string]any, levels int) (map[string]any, bool) {
	if value == nil || levels == 0 {
		return nil, false
	}
	out := make(map[string]any, len(value))
	for key, field := range value {
		copied, ok := clone(field, levels-1)
		if !ok || !utf8.ValidString(key) {
			return nil, false
		}
		out[key] = copied
	}
	return out, true
}

func cloneList(value []any, levels int) ([]any, bool) {
	if value == nil || levels == 0 {
		return nil, false
	}
	out := make([]any, len(value))
	for i, element := range value {
		copied, ok := clone(element, levels-1)
		if !ok {
			return nil, false
		}
		out[i] = copied
	}
	return out, true
}
