// SPDX-License-Identifier: Apache-2.0

// Package jsonscan estimates how much memory it takes to decode a JSON text, before the text is decoded.
package jsonscan

// These constants are the maximum memory, in bytes, that decoding takes for each object; for each member, item and
// list; and for each byte of the text. The numbers were measured with unstructured and typed objects. Decoding stores a
// text up to three times.
const (
	costOfObject = 350
	costOfValue  = 64
	costOfByte   = 3
)

// Scan reads JSON byte by byte. It does not check the syntax. If the text is not JSON, the decoder fails, and does not
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
