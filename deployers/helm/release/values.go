// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
)

// DecodeValues decodes the values of a release. Null and an empty input stand for no values. Like Helm, it decodes
// numbers as float64, because templates depend on this type. Integers that a float64 cannot represent exactly are
// decoded as int64, or as json.Number if they are even larger.
func DecodeValues(raw []byte) (map[string]any, error) {
	values := map[string]any{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return values, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&values); err != nil {
		return nil, errors.New("must be an object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("must be one object")
	}
	if values == nil { // null
		return map[string]any{}, nil
	}
	decodeNumbers(values)
	return values, nil
}

// decodeNumbers replaces the numbers in a value.
func decodeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, element := range v {
			v[key] = decodeNumbers(element)
		}
	case []any:
		for i, element := range v {
			v[i] = decodeNumbers(element)
		}
	case json.Number:
		return decodeNumber(v)
	}
	return value
}

// maxExact is the largest integer up to which a float64 represents all integers exactly.
const maxExact = 1 << 53

func decodeNumber(n json.Number) any {
	integer, err := strconv.ParseInt(n.String(), 10, 64)
	switch {
	case err == nil && integer >= -maxExact && integer <= maxExact:
		return float64(integer)
	case err == nil:
		return integer
	case errors.Is(err, strconv.ErrRange):
		return n
	}
	float, err := n.Float64()
	if err != nil {
		return n
	}
	return float
}
