// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// shortestHidden is the minimum length, in bytes, that a value in a document must have to be hidden. If shorter values
// were hidden, ordinary words would disappear, too.
const shortestHidden = 6

// RemoveDocuments removes from a text the values that occur in the given JSON documents. The text may be a message in
// which an API server or an admission webhook quotes such a document.
func RemoveDocuments(text string, documents ...[]byte) string {
	r := New(shortestHidden)
	for _, document := range documents {
		var tree any
		decoder := json.NewDecoder(bytes.NewReader(document))
		decoder.UseNumber()
		if decoder.Decode(&tree) != nil || decoder.More() {
			tree = string(document)
		}
		addValues(r, tree)
	}
	return r.Redact(text)
}

// addValues hides the numbers and the strings in a JSON value. If a string is base64, addValues also hides the
// decoded content.
func addValues(r *Redactor, value any) {
	switch v := value.(type) {
	case string:
		r.AddValues(v)
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			r.AddValues(string(raw))
		}
	case json.Number:
		r.AddValues(v.String())
	case []any:
		for _, one := range v {
			addValues(r, one)
		}
	case map[string]any:
		for _, one := range v {
			addValues(r, one)
		}
	}
}

// redactedError is an error with a text from which values were removed.
type redactedError struct {
	text string
	err  error
}

// Error removes from the text of an error the values that occur in the given JSON documents. errors.Is and errors.As
// still match the original error.
func Error(err error, documents ...[]byte) error {
	if err == nil {
		return nil
	}
	if text := RemoveDocuments(err.Error(), documents...); text != err.Error() {
		return &redactedError{text: text, err: err}
	}
	return err
}

func (e *redactedError) Error() string { return e.text }

// Is reports whether the original error matches target. There is no method Unwrap, because it would reveal the original
// text.
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

// As sets target to the first matching error in the original error, and reports whether there is one.
func (e *redactedError) As(target any) bool { return errors.As(e.err, target) }
