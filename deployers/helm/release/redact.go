// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// minRedacted is the minimum length of texts that a Redactor removes, in bytes. Shorter texts, such as "a" or "80",
// occur in almost every error, and cannot be guessed from their absence either.
const minRedacted = 4

// Redactor removes the values of a release from texts.
type Redactor struct {
	texts []string // the longest first
}

// NewRedactor returns a Redactor for all strings and numbers in values. Names of fields are not values.
func NewRedactor(values map[string]any) *Redactor {
	found := map[string]bool{}
	collect(values, found)
	r := &Redactor{}
	for text := range found {
		r.texts = append(r.texts, text)
	}
	slices.SortFunc(r.texts, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	return r
}

// collect adds the texts of a value to a set. A text with several lines is also added line by line, because errors
// often quote a single line.
func collect(value any, found map[string]bool) {
	add := func(text string) {
		if text = strings.TrimSpace(text); len(text) >= minRedacted {
			found[text] = true
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for _, element := range v {
			collect(element, found)
		}
	case []any:
		for _, element := range v {
			collect(element, found)
		}
	case string:
		add(v)
		for line := range strings.Lines(v) {
			add(line)
		}
		add(strings.Join(strings.Fields(v), " "))
	case float64, int64, json.Number:
		add(fmt.Sprint(v))
		if raw, err := json.Marshal(v); err == nil {
			add(string(raw))
		}
	}
}

// Redact replaces all values in a text by "***".
func (r *Redactor) Redact(text string) string {
	if r == nil {
		return text
	}
	for _, value := range r.texts {
		text = strings.ReplaceAll(text, value, "***")
	}
	return text
}

// Texts returns the texts that Redact replaces.
func (r *Redactor) Texts() []string { return slices.Clone(r.texts) }
