// SPDX-License-Identifier: Apache-2.0

package targets

// maxAnswerDepth is how deep an answer may be nested. Schemas of CustomResourceDefinitions are the deepest; they stay
// below 200.
const maxAnswerDepth = 500

// What decoding takes at most, in bytes: of an object, of each of its members, and of other values, measured with
// unstructured and with typed objects. Text is there up to three times.
const (
	costOfObject = 350
	costOfValue  = 64
	costOfByte   = 3
)

// scan looks at JSON byte by byte, and estimates what decoding it takes, before anything is decoded. It does not check
// the syntax: what is no JSON ends in an error of the decoder, which takes no more.
type scan struct {
	bytes, objects, values int64
	depth, deepest         int

	quoted, escaped bool
	began           bool

	// The value of the member "type" of the outermost object, and the key before it.
	word    [8]byte
	length  int
	foreign bool // the word does not fit, or has an escape
	isType  bool
	kind    string
}

// next looks at one byte. It returns true at the end of the outermost object.
func (s *scan) next(c byte) bool {
	s.bytes++
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

func (s *scan) open() {
	s.began = true
	s.depth++
	s.deepest = max(s.deepest, s.depth)
}

func (s *scan) inText(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped, s.foreign = true, true
	case c == '"':
		s.quoted = false
		if s.depth == 1 && s.isType {
			s.kind = string(s.word[:s.length])
			if s.foreign {
				s.kind = eventUnknown
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

// Kinds of events.
const (
	eventAdded   = "ADDED"
	eventError   = "ERROR"
	eventUnknown = "?"
)

// cost is what decoding takes.
func (s *scan) cost() int64 {
	return s.bytes*costOfByte + s.objects*costOfObject + s.values*costOfValue
}

// check returns what is wrong with the text so far.
func (s *scan) check(l *Limits) error {
	if s.deepest > maxAnswerDepth {
		return &LimitError{Reason: "is nested more than 500 levels deep"}
	}
	if s.cost() > l.Decoding {
		return &LimitError{Option: "Decoding", Reason: "has too many values: decoding it would take more memory than all answers may together"}
	}
	return nil
}
