// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// longestText bounds the text of one error.
	longestText = 1024
	// shortestSecret: shorter values would blank out ordinary words. Errors of Secrets show no values at all.
	shortestSecret = 4
	masked         = "***"
)

// hidden are texts that must not be shown: values of Secrets, plain and in base64.
type hidden []string

// hide adds a value.
func (h *hidden) hide(value string) {
	if len(value) < shortestSecret {
		return
	}
	quoted := strconv.Quote(value)
	*h = append(*h, value, quoted[1:len(quoted)-1])
}

// hideSecret adds what is in the data of a Secret.
func (h *hidden) hideSecret(data map[string]any) {
	for _, value := range data {
		text, isText := value.(string)
		if !isText {
			continue
		}
		h.hide(text)
		if plain, err := base64.StdEncoding.DecodeString(text); err == nil {
			h.hide(string(plain))
		}
	}
}

// sorted puts the longest first: one value may contain another.
func (h hidden) sorted() hidden {
	slices.SortFunc(h, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b)) })
	return slices.Compact(h)
}

// mask puts a mark in the place of hidden values.
func (h hidden) mask(text string) string {
	for _, value := range h {
		text = strings.ReplaceAll(text, value, masked)
	}
	return text
}

// clean makes one short line without hidden values.
func (h hidden) clean(text string) string {
	text = strings.Join(strings.Fields(h.mask(text)), " ")
	if len(text) <= longestText {
		return text
	}
	end := longestText - len("…")
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
