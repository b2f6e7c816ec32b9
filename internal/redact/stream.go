// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a part of the text, in bytes.
type span struct{ from, to int32 }

// stream is one reading of a text, with the position of each byte in the original.
type stream struct {
	bytes []byte
	at    []span
}

func read(text string) stream {
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

// over returns the span of the bytes from i to before j.
func (s *stream) over(i, j int) span { return span{s.at[i].from, s.at[j-1].to} }

// isSign reports whether a character survives every quotation. White space, quotes and backslashes do not, and a plus
// sign is a blank in URLs.
func isSign(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r != 0x7f && !isQuote(byte(r)) && r != '+'
	}
	return r != utf8.RuneError && !unicode.IsSpace(r) && !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r)
}

func isQuote(b byte) bool { return b == '"' || b == '\'' || b == '`' || b == '\\' }

// signs returns a text without the characters that quoting changes.
func signs(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		if isSign(r) {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

// signs returns the stream without the characters that quoting changes. If isWide is set, white space belongs to the
// preceding sign, so that the line break at the end of a value is hidden with it.
func (s *stream) signs(isWide bool) stream {
	out := stream{bytes: make([]byte, 0, len(s.bytes)), at: make([]span, 0, len(s.bytes))}
	for i := 0; i < len(s.bytes); {
		r, n := rune(s.bytes[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(s.bytes[i:])
		}
		if isSign(r) {
			out.addRune(r, s.over(i, i+n))
		} else if last := len(out.at) - 1; isWide && last >= 0 && unicode.IsSpace(r) && s.at[i].from <= out.at[last].to {
			out.at[last].to = s.at[i+n-1].to
		}
		i += n
	}
	return out
}

// marks are characters before each line of a quotation, as in mails, comments, diffs and tables.
const marks = ">|#*-/;:%"

// unmarked returns the stream without the marks before its lines and the adjacent white space. It reports whether there
// were any.
func (s *stream) unmarked() (out stream, had bool) {
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

// skip returns the end of a run of the given characters.
func skip(text []byte, from int, chars string) int {
	for from < len(text) && strings.IndexByte(chars, text[from]) >= 0 {
		from++
	}
	return from
}
