// SPDX-License-Identifier: Apache-2.0

// Package jsonscan estimates the memory that decoding JSON takes, before it is decoded.
package jsonscan

// The largest memory that decoding takes, in bytes: for an object, for each of its members, and for other values. It
// was measured with unstructured and typed objects. Text is stored up to three times.
const (
	costOfObject = 350
	costOfValue  = 64
	costOfByte   = 3
)

// Scan reads JSON byte by byte. It does not check the syntax: for text that is not JSON, the decoder fails without
// using more memory.
type Scan struct {
	// Bytes is the number of bytes read.
	Bytes int64
	// Depth is the nesting depth of the values.
	Depth int
	// Event is the value of the member "type" of the outermost object, or EventUnknown if it may be any event.
	Event string

	objects, values int64
	depth           int

	quoted, escaped bool
	began           bool

	// A member name or a string of the outermost object.
	word    [8]byte
	length  int
	foreign bool // the word is too long or has an escape sequence
	isType  bool
}

// Next reads one byte. It returns true at the end of the outermost object.
func (s *Scan) Next(c byte) bool {
	s.Bytes++
	if s.quoted {
		s.inText(c)
		return false
	}
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

func (s *Scan) open() {
	s.began = true
	s.depth++
	s.Depth = max(s.Depth, s.depth)
}

func (s *Scan) inText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped, s.foreign = true, true
	case c == '"':
		s.quoted = false
		if s.depth == 1 && s.isType {
			s.Event = string(s.word[:s.length])
			if s.foreign {
				s.Event = EventUnknown
			}
			s.isType = false
		}
	case s.depth == 1 && s.length < len(s.word):
		s.word[s.length] = c
		s.length++
	case s.depth == 1:
		s.foreign = true
	}
}

// Kinds of events. EventUnknown is a kind that is written with escape sequences.
const (
	EventAdded   = "ADDED"
	EventError   = "ERROR"
	EventUnknown = "?"
)

// Cost returns the largest number of bytes that decoding takes.
func (s *Scan) Cost() int64 {
	return s.Bytes*costOfByte + s.objects*costOfObject + s.values*costOfValue
}
