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

// maxData is the maximum size of a certificate, a bundle of them, or a key, in bytes of base64. A bundle of all public
// CAs has 300 KiB.
const maxData = 512 << 10

// maxToken is the maximum length of a token in bytes. No API server accepts a longer header.
const maxToken = 64 << 10

// check checks the value of one field. It is not called for nil and for fields that count as absent.
type check func(path string, value any, p Policy) error

// fields maps the allowed fields of an object to their checks. All other fields are rejected.
type fields map[string]check

// object returns value as an object after a check of all its fields. nil is an object without fields.
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

// unknown returns the error for an unknown field. It does not repeat the name, which may be anything, even a misplaced
// token.
func (f fields) unknown(path, name string) error {
	for known := range f {
		if strings.EqualFold(known, name) {
			return fault(join(path, known), "is spelled in another way; upper and lower case matter")
		}
	}
	return fault(orConfig(path), "has a field that is not known")
}

// saysNothing reports whether a field counts as absent. An empty object does not: exec: {} is a request to run a
// program.
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

// isBase64 accepts a string in base64.
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

// number returns a number in any notation of the document, and 0 for anything else.
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

// The checks such as isText find the faults. text and data read what passed them.
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
		return nil // isBase64 has checked it
	}
	return decoded
}

// parse parses a document at a path of the configuration.
func parse(path string, text []byte) (any, error) {
	tree, err := document.Read(text)
	if err != nil {
		return nil, fault(path, err.Error())
	}
	return tree, nil
}

// ignored accepts what kubeconfigs contain for other programs.
func ignored(string, any, Policy) error { return nil }

// forbidden rejects the field under every policy.
func forbidden(why string) check {
	return func(path string, _ any, _ Policy) error { return fault(path, "is not allowed: "+why) }
}

// optional rejects the field unless the policy allows it.
func optional(why string, allows func(Policy) bool, then check) check {
	return func(path string, value any, p Policy) error {
		if !allows(p) {
			return fault(path, "is not allowed by the operator: "+why)
		}
		return then(path, value, p)
	}
}

// one accepts only this value.
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

// isToken accepts a text that can be part of a header.
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
			return fault(path, "has a character that no token has, such as a line break at its end")
		}
	}
	return nil
}
