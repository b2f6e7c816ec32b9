// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// shortestHidden is the minimum length of a value of a document that is hidden. Shorter ones would hide ordinary words.
const shortestHidden = 6

// Documents removes the values of JSON documents from a text, because an API server or an admission webhook may quote
// the object in its messages.
func Documents(text string, documents ...[]byte) string {
	r := New(shortestHidden)
	for _, document := range documents {
		var tree any
		decoder := json.NewDecoder(bytes.NewReader(document))
		decoder.UseNumber()
		if decoder.Decode(&tree) != nil || decoder.More() {
			tree = string(document)
		}
		hideValues(r, tree)
	}
	return r.Redact(text)
}

// hideValues hides the strings in a JSON value, both as they are and decoded, and the numbers.
func hideValues(r *Redactor, value any) {
	switch v := value.(type) {
	case string:
		r.Hide(v)
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			r.Hide(string(raw))
		}
	case json.Number:
		r.Hide(v.String())
	case []any:
		for _, one := range v {
			hideValues(r, one)
		}
	case map[string]any:
		for _, one := range v {
			hideValues(r, one)
		}
	}
}

// redactedError is an error whose text contained values.
type redactedError struct {
	text string
	err  error
}

// Error removes the values of JSON documents from the text of an error. errors.Is and errors.As still match the error.
func Error(err error, documents ...[]byte) error {
	if err == nil {
		return nil
	}
	if text := Documents(err.Error(), documents...); text != err.Error() {
		return &redactedError{text: text, err: err}
	}
	return err
}

func (e *redactedError) Error() string { return e.text }

// Is matches the redacted error. There is no Unwrap, so the unredacted text cannot be reached.
func (e *redactedError) Is(target error) bool { return errors.Is(e.err, target) }

// As matches the redacted error.
func (e *redactedError) As(target any) bool { return errors.As(e.err, target) }
