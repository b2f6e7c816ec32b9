// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
)

const (
	// hidden stands for a value that must not be shown.
	hidden = "***"
	// shortestHidden: shorter values would blank out ordinary words.
	shortestHidden = 6
)

// withoutValues takes the values of JSON documents out of a text, plain and in
// base64: what an API server or an admission webhook says may quote the object.
func withoutValues(text string, documents ...[]byte) string {
	if len(text) < shortestHidden {
		return text
	}
	var values []string
	for _, document := range documents {
		var tree any
		if json.Unmarshal(document, &tree) != nil {
			tree = string(document)
		}
		values = append(values, string(document), base64.StdEncoding.EncodeToString(document))
		values = appendTexts(values, tree)
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	for _, value := range slices.Compact(values) { // the longest first: one may contain another
		if len(value) >= shortestHidden {
			text = strings.ReplaceAll(text, value, hidden)
		}
	}
	return text
}

// appendTexts collects the texts in a JSON value, as they are, quoted, encoded and decoded.
func appendTexts(to []string, value any) []string {
	switch v := value.(type) {
	case string:
		quoted := strconv.Quote(v)
		to = append(to, v, quoted[1:len(quoted)-1], base64.StdEncoding.EncodeToString([]byte(v)))
		if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
			to = append(to, string(raw))
		}
	case []any:
		for _, one := range v {
			to = appendTexts(to, one)
		}
	case map[string]any:
		for _, one := range v {
			to = appendTexts(to, one)
		}
	}
	return to
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
