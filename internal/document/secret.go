// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// ReadSecret returns the value of a key in the data of a secret. If key is empty, ReadSecret returns all values as one
// JSON object. Errors may contain keys, but no values.
func ReadSecret(data map[string][]byte, key string) (string, error) {
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
		fmt.Fprintf(&out, "%q:", name) // keys of secrets consist of letters, digits, -, _ and .
		if err := writeJSON(&out, data[name]); err != nil {
			return "", fmt.Errorf("the value of key %q %w", name, err)
		}
	}
	out.WriteByte('}')
	return out.String(), nil
}

// ToJSON converts a document to JSON. It rejects the same documents as [Read].
func ToJSON(text []byte) ([]byte, error) {
	var out bytes.Buffer
	if err := writeJSON(&out, text); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// writeJSON writes a document as JSON. If the document is already JSON, it is written unchanged.
func writeJSON(out *bytes.Buffer, text []byte) error {
	tree, err := Read(text)
	if err != nil {
		return err
	}
	if json.Valid(text) {
		out.Write(text)
		return nil
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // escaping would make the text longer
	if err := encoder.Encode(tree); err != nil {
		return errSyntax
	}
	out.Truncate(out.Len() - 1) // the encoder ends with a line break
	return nil
}
