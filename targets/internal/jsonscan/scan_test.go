// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"strings"
	"testing"
)

// TestScan checks that Scan detects the kind and the end of an event.
func TestScan(t *testing.T) {
	for text, kind := range map[string]string{
		`{"type":"ERROR","object":{"type":"ADDED"}}`:       "ERROR",
		`{"object":{"type":"ADDED"}, "type" : "ERROR"}`:    "ERROR",
		`{"type":"ADDED","object":{"type":"ERROR"}}`:       "ADDED",
		`{"a":"type","b":"ERROR","type":"DELETED"}`:        "DELETED",
		`{"\u0074ype":"ERROR"}`:                            "ERROR",
		`{"type":"\u0045RROR"}`:                            "?",
		`{"typeandmore":"ERROR"}`:                          "ERROR",
		`{"x":"a \"type\":\"ERROR\" b","type":"MODIFIED"}`: "MODIFIED",
	} {
		for size := 1; size <= len(text); size++ {
			s, end := Scan{}, false
			for rest := text; rest != "" && !end; {
				n, ended := s.Read([]byte(rest[:min(size, len(rest))]))
				rest, end = rest[n:], ended
			}
			if !end || s.Bytes != int64(len(text)) || s.Event != kind {
				t.Errorf("%s in parts of %d: end %t after %d bytes, kind %q, want %q", text, size, end, s.Bytes, s.Event, kind)
			}
		}
	}
}

// TestEnd checks that Read stops at the end of the outermost object, whatever its strings contain.
func TestEnd(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":"}"}`, `{"a":{"b":"}\\"},"c":"\\\"}"}`, `{"a":["\"]}","\\",[{}]]}`, `{"a":{"b":"\u007d\\\"}"}}`,
	} {
		s := Scan{}
		if n, end := s.Read([]byte(text + `{"type":"ADDED"}`)); n != len(text) || !end {
			t.Errorf("%s: read %d of %d bytes, end %t", text, n, len(text), end)
		}
	}
}

// TestCost checks that the cost counts objects, values and bytes, but not the content of strings.
func TestCost(t *testing.T) {
	text := `{"a":{"b":"[{,:\"{"},"c":[1,2]}`
	s := Scan{}
	s.Read([]byte(text))
	if want := int64(len(text)*costOfByte + 2*costOfObject + 6*costOfValue); s.Cost() != want || s.Depth != 2 {
		t.Errorf("cost %d, depth %d, want %d and 2", s.Cost(), s.Depth, want)
	}
}

// BenchmarkScan reads a response that contains a typical object.
func BenchmarkScan(b *testing.B) {
	text := []byte(`{"metadata":{"name":"a","labels":{"app":"race"},"uid":"9374b5e4-4d2e-419c-bef0-9513cb4a5738"},"data":{"settings.yaml":"` +
		strings.Repeat(`key: value\n`, 20) + `","name":"item-03-00"}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := Scan{}
		s.Read(text)
	}
}
