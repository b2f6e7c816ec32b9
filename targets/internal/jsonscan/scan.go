// SPDX-License-Identifier: Apache-2.0

// Package jsonscan estimates what decoding JSON takes, before it is decoded.
package jsonscan

// What decoding takes at most, in bytes: of an object, of each of its members, and of other values, measured with
// unstructured and with typed objects. Text is there up to three times.
const (
	costOfObject = 350
	costOfValue  = 64
	costOfByte   = 3
)

// Scan reads JSON byte by byte. It does not check the syntax: text that is not JSON ends in an error of the decoder, which
// takes no more memory.
type Scan struct {
	// Bytes is how many bytes were read.
	Bytes int64
	// Depth is how deep the values are nested.
	Depth int
	// Event is the member "type" of the outermost object, or EventUnknown if it may be any event.
	Event string

	objects, values int64
	depth           int

	quoted, escaped bool
	began           bool

	// A member name or a text of the outermost object.
	word    [8]byte
	length  int
	foreign bool // the word does not fit, or has an escape
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

// Kinds of events. EventUnknown stands for one that is not spelled plainly.
const (
	EventAdded   = "ADDED"
	EventError   = "ERROR"
	EventUnknown = "?"
)

// Cost is how many bytes decoding takes at most.
func (s *Scan) Cost() int64 {
	return s.Bytes*costOfByte + s.objects*costOfObject + s.values*costOfValue
}
