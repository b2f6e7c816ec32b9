// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// escapes contains the characters that begin an escape sequence.
	escapes = `\%&`
	// maxQuoted is the maximum number of times that a text is unescaped. A quoted text that contains another quoted text
	// must be unescaped twice.
	maxQuoted = 8
)

// dialect is a syntax of escape sequences.
type dialect int

const (
	// goText is the syntax of Go, C and Python, in which \x is a byte and \012 is octal.
	goText dialect = iota
	// yamlText is the syntax of YAML, in which \x is a character and \0 is a zero byte.
	yamlText
	// webText is the syntax of URLs and HTML, which have no backslash escapes.
	webText
)

// listForms returns the stream as it is, and the results of unescaping it once, twice and so on. isStable is false if
// the stream must be unescaped more than maxQuoted times. Otherwise, the last form contains no escape sequences.
func listForms(in stream) (out []stream, isStable bool) {
	quoted, isStable := decodeAllEscapes(in, goText)
	all := append([]stream{in}, quoted...)
	out = all[:1:1]
	contains := func(chars string) bool {
		return slices.ContainsFunc(all, func(s stream) bool { return bytes.Contains(s.bytes, []byte(chars)) })
	}
	add := func(d dialect) {
		more, isToo := decodeAllEscapes(in, d)
		out, isStable = append(out, more...), isStable && isToo
	}
	if contains(`\x`) || contains(`\0`) {
		add(yamlText)
	}
	if contains(`\`) && (contains(`%`) || contains(`&`)) {
		add(webText)
	}
	return append(out, quoted...), isStable
}

// firstAndLastForm returns the first and the last form.
func firstAndLastForm(forms []stream) []stream {
	if len(forms) < 2 {
		return forms
	}
	return []stream{forms[0], forms[len(forms)-1]}
}

// decodeAllEscapes returns the results of unescaping the stream once, twice and so on. isStable is false if the last
// result still contains escape sequences.
func decodeAllEscapes(in stream, d dialect) (out []stream, isStable bool) {
	for range maxQuoted {
		next, hadEscapes := decodeEscapes(in, d)
		if !hadEscapes {
			return out, true
		}
		out, in = append(out, next), next
	}
	_, hadEscapes := decodeEscapes(in, d)
	return out, !hadEscapes
}

// decodeEscapes replaces the escape sequences of JSON, YAML, Go, URLs or HTML once. It reports whether the stream
// contained any escape sequences.
func decodeEscapes(in stream, d dialect) (out stream, hadEscapes bool) {
	if !bytes.ContainsAny(in.bytes, escapes) {
		return in, false
	}
	out = stream{bytes: make([]byte, 0, len(in.bytes)), at: make([]span, 0, len(in.bytes))}
	for i := 0; i < len(in.bytes); {
		e := parseEscape(in.bytes[i:], d)
		if e.length == 0 {
			out.add(in.bytes[i], in.at[i])
			i++
			continue
		}
		hadEscapes = true
		at := in.getSpan(i, i+e.length)
		if e.isByte && d != yamlText {
			out.add(byte(e.char), at)
		} else {
			out.addRune(e.char, at)
		}
		i += e.length
	}
	return out, hadEscapes
}

// escape is an escape sequence: the character that it stands for, and the length of the sequence in bytes. The length
// is 0 if there is no escape sequence. isByte is true if the sequence may stand for one byte of a multi-byte character.
type escape struct {
	char   rune
	length int
	isByte bool
}

func parseEscape(text []byte, d dialect) escape {
	if len(text) < 2 {
		return escape{}
	}
	switch text[0] {
	case '\\':
		if d != webText {
			return parseBackslash(text, d)
		}
	case '%':
		if char, isHex := parseNumber(text[1:], 2, 16); isHex {
			return escape{char, 3, char >= utf8.RuneSelf}
		}
	case '&':
		return parseEntity(text)
	}
	return escape{}
}

// controls maps a letter after a backslash to the control character that it stands for.
var controls = map[byte]rune{
	'0': 0,
	'a': '\a', 'b': '\b', 'e': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', 'N': 0x85, 'L': 0x2028, 'P': 0x2029, '_': 0xa0,
}

func parseBackslash(text []byte, d dialect) escape {
	switch text[1] {
	case 'x':
		if char, isHex := parseNumber(text[2:], 2, 16); isHex {
			return escape{char, 4, char >= utf8.RuneSelf}
		}
	case 'u':
		return parseUnicodeEscape(text)
	case 'U':
		if char, isHex := parseNumber(text[2:], 8, 16); isHex {
			return escape{char, 10, false}
		}
	case '0', '1', '2', '3':
		if char, isOctal := parseNumber(text[1:], 3, 8); isOctal && d != yamlText {
			return escape{char, 4, char >= utf8.RuneSelf}
		}
	}
	if char, isKnown := controls[text[1]]; isKnown {
		return escape{char, 2, false}
	}
	if isQuote(text[1]) {
		return escape{rune(text[1]), 2, false}
	}
	return escape{' ', 1, false} // not a known escape sequence; the following bytes are read individually
}

// parseUnicodeEscape parses \uXXXX, a surrogate pair of two such sequences, or \u{X…}.
func parseUnicodeEscape(text []byte) escape {
	if end := bytes.IndexByte(text[:min(len(text), 10)], '}'); end > 3 && text[2] == '{' {
		if char, isHex := parseNumber(text[3:], end-3, 16); isHex {
			return escape{char, end + 1, false}
		}
	}
	char, isHex := parseNumber(text[2:], 4, 16)
	if !isHex {
		return escape{' ', 1, false}
	}
	if utf16.IsSurrogate(char) && len(text) > 8 && text[6] == '\\' && text[7] == 'u' {
		if low, isToo := parseNumber(text[8:], 4, 16); isToo {
			if both := utf16.DecodeRune(char, low); both != utf8.RuneError {
				return escape{both, 12, false}
			}
		}
	}
	return escape{char, 6, false}
}

// entities maps the names of the common HTML entities to their characters.
var entities = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// maxEntity is the maximum length of an entity, as in &#x10FFFF;.
const maxEntity = 12

func parseEntity(text []byte) escape {
	end := bytes.IndexByte(text[:min(len(text), maxEntity)], ';')
	if end < 2 {
		return escape{}
	}
	name := string(text[1:end])
	if char, isKnown := entities[name]; isKnown {
		return escape{char, end + 1, false}
	}
	digits, isNumber := strings.CutPrefix(name, "#")
	if !isNumber || digits == "" {
		return escape{}
	}
	base := 10
	if digits[0] == 'x' || digits[0] == 'X' {
		digits, base = digits[1:], 16
	}
	if char, isValid := parseNumber([]byte(digits), len(digits), base); isValid {
		return escape{char, end + 1, false}
	}
	return escape{}
}

// parseNumber parses n digits.
func parseNumber(text []byte, n, base int) (rune, bool) {
	if n == 0 || len(text) < n {
		return 0, false
	}
	value, err := strconv.ParseUint(string(text[:n]), base, 31)
	return rune(value), err == nil //nolint:gosec // 31 bits
}
