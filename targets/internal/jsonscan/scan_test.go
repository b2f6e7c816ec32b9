// SPDX-License-Identifier: Apache-2.0

package jsonscan

import "testing"

// TestScan checks that Scan detects the kind and the end of an event.
func TestScan(t *testing.T) {
	for text, kind := range map[string]string{
		`{"type":"ERROR","object":{"type":"ADDED"}}`:       "ERROR",
		`{"object":{"type":"ADDED"}, "type" : "ERROR"}`:    "ERROR",
		`{"type":"ADDED","object":{"type":"ERROR"}}`:       "ADDED",
		`{"a":"type","b":"ERROR","type":"DELETED"}`:        "DELETED",
		`{"\u0074ype":"ERROR"}`:                            "ERROR",
		`{"type":"\u0045RROR"}`:                            "?",
		`{"typeandmore":"ERROR"}`:                          "?",
		`{"x":"a \"type\":\"ERROR\" b","type":"MODIFIED"}`: "?",
	} {
		s, end := Scan{}, false
		for i := range len(text) {
			if end {
				t.Errorf("%s ends early, at %d", text, i)
			}
			end = s.Next(text[i])
		}
		if !end || s.Event != kind && kind != "?" {
			t.Errorf("%s: end %t, kind %q, want %q", text, end, s.Event, kind)
		}
	}
}
