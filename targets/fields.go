// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployerkit/deployerkit/internal/document"
)

// maxData is the maximum size, in bytes, of a base64-encoded certificate, certificate bundle or key. For comparison, a
// bundle of all public CAs has 300 KiB.
const maxData = 512 << 10

// maxToken is the maximum length of a token in bytes. No API server accepts a longer header value.
const maxToken = 64 << 10

// check validates the value of one field. It is not called for a field that counts as absent; see saysNothing.
type check func(path string, value any, p Policy) error

// fields maps the allowed fields of an object to their checks. All other fields are rejected.
type fields map[string]check

// object returns a value as an object after checking all of its fields. If the value is nil, object returns an empty
// object.
func (f fields) object(path string, value any, p Policy) (map[string]any, error) {
	if value == nil {
		return map[string]any{}, nil
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, fault(orConfig(path), "is not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		look, known := f[name]
		if !known {
			return nil, f.unknown(path, name)
		}
		if saysNothing(object[name]) {
			continue
		}
		if err := look(join(path, name), object[name], p); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// unknown returns the error for an unknown field. The error does not contain the unknown name, because the name may be
// a misplaced token.
func (f fields) unknown(path, name string) error {
	for known := range f {
		if strings.EqualFold(known, name) {
			return fault(join(path, known), "must be spelled exactly like this; upper and lower case matter")
		}
	}
	return fault(orConfig(path), "has an unknown field")
}

// saysNothing reports whether a field with this value counts as absent. An empty object does not count as absent,
// because exec: {} is a request to run a program.
func saysNothing(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	}
	return false
}

func isText(path string, value any, _ Policy) error {
	if _, ok := value.(string); !ok {
		return fault(path, "is not a string")
	}
	return nil
}

func isFlag(path string, value any, _ Policy) error {
	if _, ok := value.(bool); !ok {
		return fault(path, "is neither true nor false")
	}
	return nil
}

// isBase64 returns an error unless the value is a base64 string.
func isBase64(path string, value any, _ Policy) error {
	text, ok := value.(string)
	if !ok {
		return fault(path, "is not a string")
	}
	if len(text) > maxData {
		return fault(path, fmt.Sprintf("has more than %d KiB", maxData>>10))
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return fault(path, "is not valid base64")
	}
	return nil
}

// number returns a value as a float64, or 0 if the value is not a number.
func number(value any) float64 {
	switch v := value.(type) {
	case int64:
		return float64(v)
	case uint64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// text returns the value of a string field. An invalid value counts as absent, because a check such as isText has
// already reported it. The function `data` does the same for base64 fields, and decodes the value.
func text(object map[string]any, name string) string {
	s, _ := object[name].(string)
	return s
}

func data(object map[string]any, name string) []byte {
	if text(object, name) == "" {
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(text(object, name))
	if err != nil {
		return nil // isBase64 has already reported the value
	}
	return decoded
}

// parse parses a YAML or JSON document inside of a configuration. The parameter `path` is the path of the document in
// the configuration, for errors.
func parse(path string, text []byte) (any, error) {
	tree, err := document.Read(text)
	if err != nil {
		return nil, fault(path, err.Error())
	}
	return tree, nil
}

// ignored is a check that accepts every value. It is for fields that only other programs use, and for fields that are
// validated elsewhere.
func ignored(string, any, Policy) error { return nil }

// forbidden returns a check that rejects the field under every policy.
func forbidden(why string) check {
	return func(path string, _ any, _ Policy) error { return fault(path, "is not allowed: "+why) }
}

// optional returns a check that rejects the field unless the policy allows it. If the policy allows the field, the
// returned check calls the given check.
func optional(why string, allows func(Policy) bool, inner check) check {
	return func(path string, value any, p Policy) error {
		if !allows(p) {
			return fault(path, "is not allowed by the operator: "+why)
		}
		return inner(path, value, p)
	}
}

// one returns a check that accepts only the given value.
func one(only string) check {
	return func(path string, value any, _ Policy) error {
		if value != any(only) {
			return fault(path, fmt.Sprintf("is not %q", only))
		}
		return nil
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func orConfig(path string) string {
	if path == "" {
		return "kubeconfig"
	}
	return path
}

// isToken returns an error unless the value is a string that can be part of an HTTP header.
func isToken(path string, value any, _ Policy) error {
	s, ok := value.(string)
	if !ok {
		return fault(path, "is not a string")
	}
	if len(s) > maxToken {
		return fault(path, fmt.Sprintf("has more than %d KiB", maxToken>>10))
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return fault(path, "has a character that is not allowed in a token, such as a trailing line break")
		}
	}
	return nil
}
