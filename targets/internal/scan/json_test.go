// SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"testing"
)

// TestGetJSONEvent checks that an event has the type that the decoder returns, however the server splits the event.
func TestGetJSONEvent(t *testing.T) {
	for text, want := range map[string]string{
		`{"type":"ERROR","object":{"type":"ADDED"}}`:       "ERROR",
		`{"object":{"type":"ADDED"}, "type" : "ERROR"}`:    "ERROR",
		`{"type":"ADDED","object":{"type":"ERROR"}}`:       "ADDED",
		`{"a":"type","b":"ERROR","type":"DELETED"}`:        "DELETED",
		`{"\u0074ype":"ERROR"}`:                            "ERROR",
		`{"type":"\u0045RROR"}`:                            "ERROR",
		`{"type":"ADDED","type":"ERROR"}`:                  "ERROR",
		`{"Type":"ERROR"}`:                                 "",
		`{"typeandmore":"ERROR"}`:                          "",
		`{"x":"a \"type\":\"ERROR\" b","type":"MODIFIED"}`: "MODIFIED",
		`{"type":"ADDED",}`:                                EventInvalid,
		`{"type":{}}`:                                      EventInvalid,
	} {
		for size := 1; size <= len(text); size++ {
			s, end := JSONScanner{}, false
			for rest := text; rest != "" && !end; {
				n, ended := s.Scan([]byte(rest[:min(size, len(rest))]))
				rest, end = rest[n:], ended
			}
			if got := GetJSONEvent([]byte(text), &s); !end || got.Bytes != int64(len(text)) || got.Type != want {
				t.Errorf("%s in parts of %d bytes: end %t, %+v, want the type %q", text, size, end, got, want)
			}
		}
	}
}

// TestJSONScannerFindsTheEnd checks that Scan stops at the end of the outermost object, whatever its strings contain.
func TestJSONScannerFindsTheEnd(t *testing.T) {
	for _, text := range []string{
		`{}`, `{"a":"}"}`, `{"a":{"b":"}\\"},"c":"\\\"}"}`, `{"a":["\"]}","\\",[{}]]}`, `{"a":{"b":"\u007d\\\"}"}}`,
	} {
		s := JSONScanner{}
		if n, end := s.Scan([]byte(text + `{"type":"ADDED"}`)); n != len(text) || !end {
			t.Errorf("%s: read %d of %d bytes, end %t", text, n, len(text), end)
		}
	}
}

// TestScanJSONEstimatesCost checks that the cost counts objects, values and bytes, but not the content of strings.
func TestScanJSONEstimatesCost(t *testing.T) {
	text := `{"a":{"b":"[{,:\"{"},"c":[1,2]}`
	want := Cost{Memory: int64(len(text)*jsonByteCost + 2*jsonObjectCost + 6*jsonValueCost), Depth: 2}
	if got := ScanJSON([]byte(text)); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// BenchmarkScanJSON reads a response that contains a typical object.
func BenchmarkScanJSON(b *testing.B) {
	text := []byte(`{"metadata":{"name":"a","labels":{"app":"race"},"uid":"9374b5e4-4d2e-419c-bef0-9513cb4a5738"},"data":{"settings.yaml":"` +
		strings.Repeat(`key: value\n`, 20) + `","name":"item-03-00"}}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ScanJSON(text)
	}
}
