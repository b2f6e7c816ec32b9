// SPDX-License-Identifier: Apache-2.0

// Package redact removes secret values from texts of others, such as the errors of API servers and admission webhooks,
// which may repeat their input in another form.
//
// A value is found in any quotation: as it is, as JSON, JSON within JSON, YAML, a Go or URL or HTML literal, in base64,
// in hexadecimal, as a list of bytes, and with different white space. Of a value of at least 16 characters, each part
// of 16 characters is found too.
//
// The time is linear in the sizes of the values and the texts, and both sizes are limited. A text that cannot be
// checked is withheld.
package redact

import (
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// Mask replaces what was removed.
	Mask = "***"
	// Withheld is the beginning of a text that replaces one that could not be checked.
	Withheld = "withheld, because it may contain secret values: "
	// MaxText is how many bytes of a text are checked. The rest is cut off.
	MaxText = 4 << 10
	// MaxBytes is the maximum size of all values of a Redactor in bytes.
	MaxBytes = 4 << 20
	// MaxParts is the maximum number of parts of all values of a Redactor. A short value has one part, a longer one a
	// part for each of its characters, and one for every eighth beyond 16 KiB.
	MaxParts = 1 << 20

	// margin is how much of the end of a text that is too long is checked but not shown, because a value may begin
	// there.
	margin = 1 << 10
	// maxNested is how many levels of encoding, such as base64, are decoded.
	maxNested = 2
)

// Redactor removes values from texts. It is safe for concurrent use. A zero or nil Redactor hides nothing.
type Redactor struct {
	shortest int

	mu      sync.Mutex
	seed    maphash.Seed
	seen    map[uint64]struct{} // hashes of the values
	pending []string            // values that are not in the indexes yet, because many runs have no text to redact
	bytes   int                 // size of all values
	gaveUp  string              // why texts can no longer be checked

	signs index // of values without the characters that quoting changes
	exact index // of values that consist mostly of such characters
}

// New returns a Redactor for values of at least shortest bytes. Shorter ones are ignored, because they are part of many
// words.
func New(shortest int, values ...string) *Redactor {
	r := &Redactor{
		shortest: shortest, seed: maphash.MakeSeed(), seen: map[uint64]struct{}{},
		signs: newIndex(shortest), exact: newIndex(shortest),
	}
	r.Hide(values...)
	return r
}

// Hide adds values.
func (r *Redactor) Hide(values ...string) {
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
			r.giveUp("there are too many bytes of them")
		}
	}
}

// giveUp drops all values. From now on each text is withheld.
func (r *Redactor) giveUp(why string) {
	r.gaveUp = why
	r.seen, r.pending, r.signs, r.exact = nil, nil, index{}, index{}
}

// Redact returns the text with values replaced by Mask. If the text has more than MaxText bytes, its end and a little
// more is cut off. If there are too many values, or the text is quoted too deeply, the result says so instead.
func (r *Redactor) Redact(text string) string {
	whole := len(text)
	text = cut(text, MaxText)
	if r == nil || r.shortest == 0 {
		return join(text, len(text) < whole)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.learn()
	switch {
	case r.gaveUp != "":
		return Withheld + r.gaveUp
	case r.signs.isEmpty() && r.exact.isEmpty():
		return join(text, len(text) < whole)
	}
	s := &search{Redactor: r, hidden: make([]bool, len(text)), end: len(text)}
	if len(text) < whole {
		s.end = max(0, len(text)-margin)
	}
	if !s.all(read(text), maxNested) {
		return Withheld + "it is quoted too deeply"
	}
	return s.show(text, whole)
}

// learn adds the pending values to the indexes.
func (r *Redactor) learn() {
	for _, value := range r.pending {
		if strings.ContainsAny(value, escapes) {
			forms, _ := forms(read(value))
			for _, form := range forms {
				r.index(form.bytes, form.signs(false).bytes)
			}
		} else {
			r.index([]byte(value), signs(value))
		}
		if r.signs.size()+r.exact.size() > MaxParts {
			r.giveUp("there are too many of them")
			return
		}
	}
	r.pending = nil
}

// index adds one form of a value.
func (r *Redactor) index(value, signs []byte) {
	switch {
	case len(signs) >= r.shortest:
		r.signs.add(signs)
	case len(value) >= r.shortest && strings.TrimSpace(string(value)) != "":
		r.exact.add(value)
	}
}

// search is the search of one text.
type search struct {
	*Redactor

	hidden []bool // by byte of the text
	end    int    // end of what is shown
}

// all searches all readings of a stream, and what it contains in base64 and other encodings. It reports whether that
// was possible.
func (s *search) all(in stream, nested int) bool {
	readings, isStable := forms(in)
	if !isStable {
		return false
	}
	for _, reading := range readings {
		s.one(reading, nested == maxNested)
		if lines, had := reading.unmarked(); had {
			s.one(lines, nested == maxNested)
		}
	}
	if nested == 0 {
		return true
	}
	for _, reading := range ends(readings) {
		for _, decode := range decoders {
			inner := decode(reading)
			if len(inner.bytes) >= s.shortest && !s.all(inner, nested-1) {
				return false
			}
		}
	}
	return true
}

// one searches one reading. A value that may continue beyond the end of the text shortens what is shown.
func (s *search) one(reading stream, isOuter bool) {
	signs := reading.signs(!isOuter)
	s.signs.find(signs, s.hide)
	if !s.exact.isEmpty() {
		s.exact.find(reading, s.hide)
	}
	if isOuter && s.end < len(s.hidden) && len(signs.bytes) > 0 {
		s.end = min(s.end, int(signs.at[max(0, len(signs.bytes)-part+1)].from))
	}
}

func (s *search) hide(at span) {
	for i := at.from; i < at.to; i++ {
		s.hidden[i] = true
	}
}

// show returns the text with the hidden parts replaced by Mask.
func (s *search) show(text string, whole int) string {
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
	return join(cut(out.String(), out.Len()), len(text) < whole)
}

// cut returns at most limit bytes of the beginning of a text, without a partial character at its end.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// join appends a mark to a text that continues.
func join(text string, goesOn bool) string {
	if goesOn {
		return text + "…"
	}
	return text
}
