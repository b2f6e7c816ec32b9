// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a range of bytes in the original text.
type span struct{ from, to int32 }

// stream is one form of a text, such as the text without escape sequences. For each byte of this form, the stream
// contains the corresponding span of the original text.
type stream struct {
	bytes []byte
	at    []span
}

func newStream(text string) stream {
	out := stream{bytes: []byte(text), at: make([]span, len(text))}
	for i := range out.at {
		out.at[i] = span{int32(i), int32(i) + 1} //nolint:gosec // texts and values have a few MiB at most
	}
	return out
}

func (s *stream) add(b byte, at span) {
	s.bytes, s.at = append(s.bytes, b), append(s.at, at)
}

func (s *stream) addRune(r rune, at span) {
	s.bytes = utf8.AppendRune(s.bytes, r)
	for len(s.at) < len(s.bytes) {
		s.at = append(s.at, at)
	}
}

// getSpan returns the span of the bytes from index i up to, but not including, index j.
func (s *stream) getSpan(i, j int) span { return span{s.at[i].from, s.at[j-1].to} }

// isUnchangedByQuoting reports whether a character stays the same in every form of quoting. Quoting may change white
// space, quotes and backslashes. It may also change a plus sign, because a plus sign in a URL means a space.
func isUnchangedByQuoting(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r != 0x7f && !isQuote(byte(r)) && r != '+'
	}
	return r != utf8.RuneError && !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' || b == '\\' }

// removeQuotable returns a text without the characters that quoting may change.
func removeQuotable(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if isUnchangedByQuoting(r) {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// removeQuotable returns the stream without the characters that quoting may change. If isWide is true, the span of each
// remaining character includes the white space that follows. A line break at the end of a value is then hidden together
// with the value.
func (s *stream) removeQuotable(isWide bool) stream {
	out := stream{bytes: make([]byte, 0, len(s.bytes)), at: make([]span, 0, len(s.bytes))}
	for i := 0; i < len(s.bytes); {
		r, n := rune(s.bytes[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s.bytes[i:])
		}
		if isUnchangedByQuoting(r) {
			out.addRune(r, s.getSpan(i, i+n))
		} else if last := len(out.at) - 1; isWide && last >= 0 && unicode.IsSpace(r) && s.at[i].from <= out.at[last].to {
			out.at[last].to = s.at[i+n-1].to
		}
		i += n
	}
	return out
}

// marks contains the characters that may precede each line of a quoted text, as in emails, comments, diffs and tables.
const marks = ">|#*-/;:%"

// removeLineMarks removes the characters in `marks` from the beginnings of lines, together with the white space before
// them. It reports whether there were any such characters.
func (s *stream) removeLineMarks() (out stream, had bool) {
	for i := 0; i < len(s.bytes); i++ {
		out.add(s.bytes[i], s.at[i])
		if s.bytes[i] != '\n' {
			continue
		}
		mark := skip(s.bytes, i+1, " \t")
		if mark == len(s.bytes) || strings.IndexByte(marks, s.bytes[mark]) < 0 {
			continue
		}
		i, had = skip(s.bytes, mark, string(s.bytes[mark]))-1, true
	}
	return out, had
}

// skip returns the index of the first byte that is not in `chars`, starting at the index `from`.
func skip(text []byte, from int, chars string) int {
	for from < len(text) && strings.IndexByte(chars, text[from]) >= 0 {
		from++
	}
	return from
}
