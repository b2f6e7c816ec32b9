// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/deployerkit/deployerkit/internal/redact"
)

const (
	// longestText limits the text of one error.
	longestText = 1024
	// shortestSecret is the length of the shortest value that is hidden. Hiding shorter values would remove ordinary
	// words. Errors of Secrets show no values at all.
	shortestSecret = 4
)

// hideSecret hides all strings in the data of a Secret. For valid base64 the value is the decoded text, which is also
// found in encoded form.
func hideSecret(hide *redact.Redactor, data any) {
	switch v := data.(type) {
	case string:
		if plain, err := base64.StdEncoding.DecodeString(v); err == nil {
			v = string(plain)
		}
		hide.Hide(v)
	case []any:
		for _, one := range v {
			hideSecret(hide, one)
		}
	case map[string]any:
		for _, one := range v {
			hideSecret(hide, one)
		}
	}
}

// clean returns one short line without hidden values.
func clean(hide *redact.Redactor, text string) string { return oneLine(hide.Redact(text)) }

// oneLine returns one short line.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longestText {
		return text
	}
	end := longestText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
