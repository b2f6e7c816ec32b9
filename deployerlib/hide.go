// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/deployerkit/deployerkit/internal/redact"
)

// shortestHidden: shorter values would blank out ordinary words.
const shortestHidden = 6

// withoutValues takes the values of JSON documents out of a text: what an API
// server or an admission webhook says may quote the object.
func withoutValues(text string, documents ...[]byte) string {
	r := redact.New(shortestHidden)
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

// hideValues hides the texts in a JSON value, as they are and decoded, and the numbers.
func hideValues(r *redact.Redactor, value any) {
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

// quietError is an error whose text had values in it.
type quietError struct {
	text string
	err  error
}

// quiet takes the values of documents out of the text of an error. It can still be recognised.
func quiet(err error, documents ...[]byte) error {
	if err == nil {
		return nil
	}
	if text := withoutValues(err.Error(), documents...); text != err.Error() {
		return &quietError{text: text, err: err}
	}
	return err
}

func (e *quietError) Error() string { return e.text }

// Is and As find what was quietened, without giving it to those who walk the tree for texts.
func (e *quietError) Is(target error) bool { return errors.Is(e.err, target) }

// As is the other half of Is.
func (e *quietError) As(target any) bool { return errors.As(e.err, target) }
