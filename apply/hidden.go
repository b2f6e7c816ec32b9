// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/deployerkit/deployerkit/internal/redact"
)

const (
	// longestText bounds the text of one error.
	longestText = 1024
	// shortestSecret: shorter values would blank out ordinary words. Errors of Secrets show no values at all.
	shortestSecret = 4
)

// hideSecret hides all texts in the data of a Secret. In valid base64, what is encoded is the value; it is found encoded too.
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

// clean makes one short line without hidden values.
func clean(hide *redact.Redactor, text string) string { return oneLine(hide.Redact(text)) }

// oneLine makes one short line.
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
