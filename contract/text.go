// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These constants limit the fields of an error in the status, in bytes.
const (
	// MaxMessage is the maximum length of the message, in bytes.
	MaxMessage = 1024
	// MaxReason is the maximum length of the operation, the reason and each code, in bytes.
	MaxReason = 128
)

// OneLine returns s as one line of valid UTF-8. Line breaks become "; ". Other control characters and runs of white
// space become one space. Bidirectional control characters become escapes. If limit is positive, a line of more than
// limit bytes is shortened by [Truncate].
func OneLine(s string, limit int) string {
	var b strings.Builder
	gap, broken := false, false
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			gap = true
			broken = broken || r == '\n'
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteString(getSeparator(b.String(), broken))
		}
		gap, broken = false, false
		writeRune(&b, r)
	}
	return Truncate(b.String(), limit)
}

// getSeparator returns the text that replaces the white space after before. The result is "; " for a line break, and a
// space otherwise. After an opening bracket, a comma, a colon or a semicolon, the result is always a space.
func getSeparator(before string, broken bool) string {
	if !broken || strings.ContainsRune(":;,([{", rune(before[len(before)-1])) {
		return " "
	}
	return "; "
}

// Truncate shortens s to at most limit bytes, at a rune boundary. If there is enough space, the result ends with the
// number of bytes that are missing. If limit is 0 or less, Truncate returns s.
func Truncate(s string, limit int) string {
	if limit <= 0 || len(s) <= limit {
		return s
	}
	note := fmt.Sprintf("… (%d bytes cut)", len(s))
	keep := limit - len(note)
	if keep <= 0 {
		return strings.TrimRight(s[:lastRuneStart(s, limit)], " ")
	}
	keep = lastRuneStart(s, keep)
	return s[:keep] + fmt.Sprintf("… (%d bytes cut)", len(s)-keep)
}

// lastRuneStart returns the largest index that is not greater than i and at which a rune begins.
func lastRuneStart(s string, i int) int {
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return i
}

// EscapeBidi returns a copy of s in which bidirectional control characters are replaced by escapes. For example, \u202e
// replaces U+202E. Such characters can make a text look like a different text.
func EscapeBidi(s string) string {
	if !strings.ContainsFunc(s, isBidi) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		writeRune(&b, r)
	}
	return b.String()
}

func writeRune(b *strings.Builder, r rune) {
	if isBidi(r) {
		fmt.Fprintf(b, `\u%04x`, r)
		return
	}
	b.WriteRune(r)
}

// isBidi reports whether r changes the direction of the text that follows.
func isBidi(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }
