// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"

	sigsjson "sigs.k8s.io/json"
)

// These constants are the maximum memory, in bytes, that decoding takes for each object; for each member, item and
// list; and for each byte of the text. The numbers were measured with unstructured and typed objects. Decoding stores a
// text up to three times.
const (
	jsonObjectCost = 350
	jsonValueCost  = 64
	jsonByteCost   = 3
)

// JSONScanner scans ScanJSON part by part. It does not check the syntax. If the text is not ScanJSON, the decoder
// fails, and does not use more memory than the scanner estimates.
type JSONScanner struct {
	// Bytes is the number of bytes scanned.
	Bytes int64

	objects, values     int64
	depth, maxDepth     int
	isQuoted, isEscaped bool
}

// ScanJSON scans a whole text. A client may also decode what follows the outermost object.
func ScanJSON(text []byte) Cost {
	s := JSONScanner{}
	for len(text) > 0 {
		n, _ := s.Scan(text)
		text = text[n:]
	}
	return s.GetCost()
}

// GetJSONEvent returns the event of a watch with the given text, which has been scanned.
func GetJSONEvent(text []byte, s *JSONScanner) Event {
	var event struct {
		Type string `json:"type"`
	}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(text, &event); err != nil {
		event.Type = EventInvalid
	}
	return Event{Type: event.Type, Bytes: s.Bytes, Cost: s.GetCost()}
}

// GetCost returns the cost of decoding the parts that have been scanned.
func (s *JSONScanner) GetCost() Cost {
	return Cost{Memory: s.Bytes*jsonByteCost + s.objects*jsonObjectCost + s.values*jsonValueCost, Depth: s.maxDepth}
}

// Scan scans the next part of the text, up to the end of the outermost object. It returns the number of bytes that it
// has scanned, and whether the object has ended.
func (s *JSONScanner) Scan(text []byte) (n int, end bool) {
	for n < len(text) && !end {
		if s.isQuoted {
			n += s.skipString(text[n:])
			continue
		}
		end = s.scanByte(text[n])
		n++
	}
	s.Bytes += int64(n)
	return n, end
}

// scanByte scans one byte outside of strings. It returns true at the end of the outermost object.
func (s *JSONScanner) scanByte(c byte) bool {
	switch c {
	case '"':
		s.isQuoted = true
	case '{', '[':
		if c == '{' {
			s.objects++
		} else {
			s.values++
		}
		s.depth++
		s.maxDepth = max(s.maxDepth, s.depth)
	case '}', ']':
		s.depth--
		return s.depth <= 0 && s.maxDepth > 0
	case ',', ':':
		s.values++
	}
	return false
}

// skipString skips a string up to its end or the next backslash. It returns the number of bytes that it has skipped.
func (s *JSONScanner) skipString(text []byte) int {
	if s.isEscaped {
		s.isEscaped = false
		return 1
	}
	i := bytes.IndexAny(text, `"\`)
	if i < 0 {
		return len(text)
	}
	s.isQuoted, s.isEscaped = text[i] != '"', text[i] == '\\'
	return i + 1
}
