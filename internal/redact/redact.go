// SPDX-License-Identifier: Apache-2.0

// Package redact removes secret values from texts of other programs. Examples are the errors of API servers and
// admission webhooks, which may quote a part of a request in another form.
//
// A value is found in many forms: as it is, as JSON, as JSON within JSON, as YAML, in the syntax of Go, URLs or HTML,
// in base64, in hexadecimal, as a list of bytes, and with different white space. If a value has at least 16 characters,
// each part of 16 characters is also found.
//
// The running time is linear in the sizes of the values and the texts, and both sizes are limited. If a text cannot be
// checked, a fixed message replaces the whole text.
package redact

import (
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// Mask replaces each value that is removed from a text.
	Mask = "***"
	// Withheld is the beginning of the message that replaces a text if the text cannot be checked.
	Withheld = "withheld, because it may contain secret values: "
	// MaxText is the maximum number of bytes of a text that are checked. The rest is cut off.
	MaxText = 4 << 10
	// MaxBytes is the maximum size of all values of a Redactor in bytes.
	MaxBytes = 4 << 20
	// MaxParts is the maximum number of parts of all values of a Redactor. A value of up to 16 characters is one part. A
	// longer value has about one part for each character, or, above 16 KiB, for every eighth character.
	MaxParts = 1 << 20

	// margin is the number of bytes at the end of a shortened text that are not shown, because they may be the beginning
	// of a value.
	margin = 1 << 10
	// maxNested is the maximum number of levels of encoding, such as base64, that are decoded.
	maxNested = 2
)

// Redactor removes values from texts. It is safe for concurrent use. A zero or nil Redactor hides nothing.
type Redactor struct {
	shortest int

	mu      sync.Mutex
	seed    maphash.Seed
	seen    map[uint64]struct{} // hashes of the values
	pending []string            // values that are not in an index yet; the next call of Redact adds them
	bytes   int                 // total size of all values
	gaveUp  string              // the reason why texts cannot be checked, or ""

	signs index // the values, without the characters that quoting may change
	exact index // values that consist mostly of characters that quoting may change; these characters are kept
}

// New returns a Redactor that hides the given values. It ignores values with fewer than `shortest` bytes, because they
// could be part of many words.
func New(shortest int, values ...string) *Redactor {
	r := &Redactor{
		shortest: shortest, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{},
		signs: newIndex(shortest), exact: newIndex(shortest),
	}
	r.AddValues(values...)
	return r
}

// AddValues adds values that Redact removes from texts.
func (r *Redactor) AddValues(values ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range values {
		if len(value) < r.shortest || r.gaveUp != "" {
			continue
		}
		id := maphash.String(r.seed, value)
		if _, isKnown := r.seen[id]; isKnown {
			continue
		}
		r.seen[id] = struct{}{}
		r.pending = append(r.pending, value)
		if r.bytes += len(value); r.bytes > MaxBytes {
			r.disable("the secret values are too long in total")
		}
	}
}

// disable discards all values. From now on, Redact returns only the reason why it cannot check a text.
func (r *Redactor) disable(why string) {
	r.gaveUp = why
	r.seen, r.pending, r.signs, r.exact = nil, nil, index{}, index{}
}

// Redact returns the text with each value replaced by Mask. If the text is longer than MaxText bytes, Redact returns
// only the beginning, which is somewhat shorter than MaxText. If there are too many values, or if the text contains too
// many levels of quoting, Redact returns a message that begins with Withheld.
func (r *Redactor) Redact(text string) string {
	whole := len(text)
	text = trimToLimit(text, MaxText)
	if r == nil || r.shortest == 0 {
		return appendEllipsis(text, len(text) < whole)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.indexPending()
	switch {
	case r.gaveUp != "":
		return Withheld + r.gaveUp
	case r.signs.isEmpty() && r.exact.isEmpty():
		return appendEllipsis(text, len(text) < whole)
	}
	s := &search{Redactor: r, hidden: make([]bool, len(text)), end: len(text)}
	if len(text) < whole {
		s.end = max(0, len(text)-margin)
	}
	if !s.searchAll(newStream(text), maxNested) {
		return Withheld + "the text is quoted too deeply"
	}
	return s.toText(text, whole)
}

// indexPending adds the pending values to the indexes.
func (r *Redactor) indexPending() {
	for _, value := range r.pending {
		if strings.ContainsAny(value, escapes) {
			forms, _ := listForms(newStream(value))
			for _, form := range forms {
				r.addToIndex(form.bytes, form.removeQuotable(false).bytes)
			}
		} else {
			r.addToIndex([]byte(value), removeQuotable(value))
		}
		if r.signs.size()+r.exact.size() > MaxParts {
			r.disable("there are too many secret values")
			return
		}
	}
	r.pending = nil
}

// addToIndex adds a value, or an unescaped form of it, to one of the two indexes. In signs, the same text lacks the
// characters that quoting may change.
func (r *Redactor) addToIndex(value, signs []byte) {
	switch {
	case len(signs) >= r.shortest:
		r.signs.add(signs)
	case len(value) >= r.shortest && strings.TrimSpace(string(value)) != "":
		r.exact.add(value)
	}
}

// search is the state of the search in one text.
type search struct {
	*Redactor

	hidden []bool // for each byte of the text, whether it is hidden
	end    int    // end of the part of the text that is shown
}

// searchAll searches all forms of a stream. It also decodes base64 and other encodings in these forms, and searches the
// results. It returns false if the stream must be unescaped too many times.
func (s *search) searchAll(in stream, nested int) bool {
	readings, isStable := listForms(in)
	if !isStable {
		return false
	}
	for _, reading := range readings {
		s.searchForm(reading, nested == maxNested)
		if lines, had := reading.removeLineMarks(); had {
			s.searchForm(lines, nested == maxNested)
		}
	}
	if nested == 0 {
		return true
	}
	for _, reading := range firstAndLastForm(readings) {
		for _, decode := range decoders {
			inner := decode(reading)
			if len(inner.bytes) >= s.shortest && !s.searchAll(inner, nested-1) {
				return false
			}
		}
	}
	return true
}

// searchForm searches one form of a stream. If the text was cut, its end may be the beginning of a value. searchForm
// therefore shortens the part of the text that is shown.
func (s *search) searchForm(reading stream, isOuter bool) {
	signs := reading.removeQuotable(!isOuter)
	s.signs.find(signs, s.markHidden)
	if !s.exact.isEmpty() {
		s.exact.find(reading, s.markHidden)
	}
	if isOuter && s.end < len(s.hidden) && len(signs.bytes) > 0 {
		s.end = min(s.end, int(signs.at[max(0, len(signs.bytes)-part+1)].from))
	}
}

func (s *search) markHidden(at span) {
	for i := at.from; i < at.to; i++ {
		s.hidden[i] = true
	}
}

// toText returns the text with the hidden parts replaced by Mask.
func (s *search) toText(text string, whole int) string {
	out := strings.Builder{}
	for i := 0; i < s.end; {
		from := i
		for i < s.end && s.hidden[i] == s.hidden[from] {
			i++
		}
		if s.hidden[from] {
			out.WriteString(Mask)
		} else {
			out.WriteString(text[from:i])
		}
	}
	return appendEllipsis(trimToLimit(out.String(), out.Len()), len(text) < whole)
}

// trimToLimit returns the first bytes of a text, at most `limit`. It does not split a multi-byte character.
func trimToLimit(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// appendEllipsis appends "…" to a text if goesOn is true.
func appendEllipsis(text string, goesOn bool) string {
	if goesOn {
		return text + "…"
	}
	return text
}
