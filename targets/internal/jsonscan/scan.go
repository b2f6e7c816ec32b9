// SPDX-License-Identifier: Apache-2.0

// Package jsonscan estimates how much memory it takes to decode a JSON text, before the text is decoded.
package jsonscan

import "bytes"

// These constants are the maximum memory, in bytes, that decoding takes for each object; for each member, item and
// list; and for each byte of the text. The numbers were measured with unstructured and typed objects. Decoding stores a
// text up to three times.
const (
	costOfObject = 350
	costOfValue  = 64
	costOfByte   = 3
)

// Scan reads JSON. It does not check the syntax. If the text is not JSON, the decoder fails, and does not
// use more memory than Scan estimates.
type Scan struct {
	// Bytes is the number of bytes read.
	Bytes int64
	// Depth is the maximum nesting depth of the values.
	Depth int
	// Event is the value of the member "type" of the outermost object. It is EventUnknown if the value contains escape
	// sequences.
	Event string

	objects, values int64
	depth           int

	quoted, escaped bool
	began           bool

	// word contains the first bytes of the last member name or string in the outermost object. The field `length` is the
	// number of these bytes.
	word    [8]byte
	length  int
	foreign bool // the name or string in `word` is longer than 8 bytes or contains an escape sequence
	isType  bool
}

// All scans a whole text. A client may also decode what follows the outermost object.
func All(text []byte) (s Scan) {
	for len(text) > 0 {
		n, _ := s.Read(text)
		text = text[n:]
	}
	return s
}

// Read reads the next part of the text, up to the end of the outermost object. It returns the number of bytes that it
// has read, and whether the object has ended.
func (s *Scan) Read(text []byte) (n int, end bool) {
	for n < len(text) && !end {
		switch {
		case !s.quoted:
			end = s.inStructure(text[n])
			n++
		case s.depth == 1:
			s.inText(text[n])
			n++
		default:
			n += s.skip(text[n:])
		}
	}
	s.Bytes += int64(n)
	return n, end
}

// inStructure reads one byte outside of strings. It returns true at the end of the outermost object.
func (s *Scan) inStructure(c byte) bool {
	switch c {
	case '"':
		s.quoted, s.length, s.foreign = true, 0, false
	case '{':
		s.objects++
		s.open()
	case '[':
		s.values++
		s.open()
	case '}', ']':
		s.depth--
		return s.depth <= 0 && s.began
	case ',':
		s.values++
		s.isType = false
	case ':':
		s.values++
		s.isType = s.depth == 1 && (s.foreign || string(s.word[:s.length]) == "type")
	}
	return false
}

// skip reads a string of an inner object or list up to its end or the next backslash. Only the end of such a string
// matters. skip returns the number of bytes that it has read.
func (s *Scan) skip(text []byte) int {
	if s.escaped {
		s.escaped = false
		return 1
	}
	i := bytes.IndexAny(text, `"\`)
	if i < 0 {
		return len(text)
	}
	s.quoted, s.escaped = text[i] != '"', text[i] == '\\'
	return i + 1
}

func (s *Scan) open() {
	s.began = true
	s.depth++
	s.Depth = max(s.Depth, s.depth)
}

// inText reads one byte of a name or string of the outermost object.
func (s *Scan) inText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped, s.foreign = true, true
	case c == '"':
		s.quoted = false
		if s.isType {
			s.Event = string(s.word[:s.length])
			if s.foreign {
				s.Event = EventUnknown
			}
			s.isType = false
		}
	case s.length < len(s.word):
		s.word[s.length] = c
		s.length++
	default:
		s.foreign = true
	}
}

// These constants are types of watch events. EventUnknown is used if the type is written with escape sequences.
const (
	EventAdded   = "ADDED"
	EventError   = "ERROR"
	EventUnknown = "?"
)

// Cost returns the maximum memory that decoding takes, in bytes.
func (s *Scan) Cost() int64 {
	return s.Bytes*costOfByte + s.objects*costOfObject + s.values*costOfValue
}
