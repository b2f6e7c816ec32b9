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

// maxDataSize is the maximum size, in bytes, of a base64-encoded certificate, certificate bundle or key. For
// comparison, a bundle of all public CAs has 300 KiB.
const maxDataSize = 512 << 10

// maxTokenLength is the maximum length of a token in bytes. No API server accepts a longer header value.
const maxTokenLength = 64 << 10

// check validates the value of one field. It is not called for a field that counts as absent; see isAbsent.
type check func(path string, value any, p Policy) error

// fields maps the allowed fields of an object to their checks. All other fields are rejected.
type fields map[string]check

// readObject returns a value as an object after checking all of its fields. If the value is nil, readObject returns an
// empty object.
func (f fields) readObject(path string, value any, p Policy) (map[string]any, error) {
	if value == nil {
		return map[string]any{}, nil
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		return nil, newConfigError(defaultPath(path), "is not an object")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		look, known := f[name]
		if !known {
			return nil, f.newUnknownFieldError(path, name)
		}
		if isAbsent(object[name]) {
			continue
		}
		if err := look(joinPath(path, name), object[name], p); err != nil {
			return nil, err
		}
	}
	return object, nil
}

// newUnknownFieldError returns the error for an unknown field. The error does not contain the unknown name, because the
// name may be a misplaced token.
func (f fields) newUnknownFieldError(path, name string) error {
	for known := range f {
		if strings.EqualFold(known, name) {
			return newConfigError(joinPath(path, known), "must be spelled exactly like this; upper and lower case matter")
		}
	}
	return newConfigError(defaultPath(path), "has an unknown field")
}

// isAbsent reports whether a field with this value counts as absent. An empty object does not count as absent,
// because exec: {} is a request to run a program.
func isAbsent(value any) bool {
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
		return newConfigError(path, "is not a string")
	}
	return nil
}

func isFlag(path string, value any, _ Policy) error {
	if _, ok := value.(bool); !ok {
		return newConfigError(path, "is neither true nor false")
	}
	return nil
}

// isBase64 returns an error unless the value is a base64 string.
func isBase64(path string, value any, _ Policy) error {
	text, ok := value.(string)
	if !ok {
		return newConfigError(path, "is not a string")
	}
	if len(text) > maxDataSize {
		return newConfigError(path, fmt.Sprintf("has more than %d KiB", maxDataSize>>10))
	}
	if _, err := base64.StdEncoding.DecodeString(text); err != nil {
		return newConfigError(path, "is not valid base64")
	}
	return nil
}

// toNumber returns a value as a float64, or 0 if the value is not a number.
func toNumber(value any) float64 {
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

// getText returns the value of a string field. An invalid value counts as absent, because a check such as isText has
// already reported it. The function `data` does the same for base64 fields, and decodes the value.
func getText(object map[string]any, name string) string {
	s, _ := object[name].(string)
	return s
}

func getData(object map[string]any, name string) []byte {
	if getText(object, name) == "" {
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(getText(object, name))
	if err != nil {
		return nil // isBase64 has already reported the value
	}
	return decoded
}

// parseDocument parses a YAML or JSON document inside of a configuration. Errors contain path, the path of the document
// in the configuration.
func parseDocument(path string, text []byte) (any, error) {
	tree, err := document.Read(text)
	if err != nil {
		return nil, newConfigError(path, err.Error())
	}
	return tree, nil
}

// acceptAny is a check that accepts every value. It is for fields that only other programs use, and for fields that are
// validated elsewhere.
func acceptAny(string, any, Policy) error { return nil }

// rejectAlways returns a check that rejects the field under every policy.
func rejectAlways(why string) check {
	return func(path string, _ any, _ Policy) error { return newConfigError(path, "is not allowed: "+why) }
}

// rejectUnlessAllowed returns a check that rejects the field unless the policy allows it. If the policy allows the
// field, the returned check calls the given check.
func rejectUnlessAllowed(why string, allows func(Policy) bool, inner check) check {
	return func(path string, value any, p Policy) error {
		if !allows(p) {
			return newConfigError(path, "is not allowed by the operator: "+why)
		}
		return inner(path, value, p)
	}
}

// acceptOnly returns a check that accepts only the given value.
func acceptOnly(only string) check {
	return func(path string, value any, _ Policy) error {
		if value != any(only) {
			return newConfigError(path, fmt.Sprintf("is not %q", only))
		}
		return nil
	}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func defaultPath(path string) string {
	if path == "" {
		return "kubeconfig"
	}
	return path
}

// isToken returns an error unless the value is a string that can be part of an HTTP header.
func isToken(path string, value any, _ Policy) error {
	s, ok := value.(string)
	if !ok {
		return newConfigError(path, "is not a string")
	}
	if len(s) > maxTokenLength {
		return newConfigError(path, fmt.Sprintf("has more than %d KiB", maxTokenLength>>10))
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return newConfigError(path, "has a character that is not allowed in a token, such as a trailing line break")
		}
	}
	return nil
}
