// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// content returns the raw value of the key, or without a key all values as one JSON object.
// Errors name keys only: the texts of the YAML parser quote what they stumble over.
func content(data map[string][]byte, key string) (string, error) {
	if key != "" {
		value, exists := data[key]
		if !exists {
			return "", fmt.Errorf("key %q is missing", key)
		}
		return string(value), nil
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(data)) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:", name) // keys of secrets are letters, digits, -, _ and .
		if err := writeJSON(&out, data[name]); err != nil {
			return "", fmt.Errorf("the value of key %q %w", name, err)
		}
	}
	out.WriteByte('}')
	return out.String(), nil
}

// writeJSON writes a document as JSON. What is JSON already stays as it is.
func writeJSON(out *bytes.Buffer, text []byte) error {
	tree, err := readDocument(text)
	if err != nil {
		return err
	}
	if json.Valid(text) {
		out.Write(text)
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // which would make the text longer
	if err := encoder.Encode(tree); err != nil {
		return errDocumentSyntax
	}
	out.Truncate(out.Len() - 1) // the encoder ends with a line break
	return nil
}
