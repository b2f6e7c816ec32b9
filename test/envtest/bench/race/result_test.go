// SPDX-License-Identifier: Apache-2.0

package race

import (
	"strings"
	"testing"
	"time"
)

func TestResult(t *testing.T) {
	r := newResult([]Contender{{Name: "slow"}, {Name: "fast"}})
	fast := []time.Duration{500 * time.Millisecond, 250 * time.Millisecond, time.Second}
	for leg := range legs {
		for round, took := range []time.Duration{time.Second, 2 * time.Second, 9 * time.Second} {
			r.add("slow", leg, lap{took: took, calls: 20, objects: 10})
			r.add("fast", leg, lap{took: fast[round], calls: 5, objects: 10})
		}
	}
	if got := r.PerSecond("slow", Nothing); got != 5 {
		t.Errorf("%g objects/s, want those of the median round, 5", got)
	}
	if got := r.Ratio("fast", "slow", Install); got != 8 { // the rounds have the ratios 2, 8 and 9
		t.Errorf("ratio %g, want 8", got)
	}
	if got := r.Calls("slow", Install); got != 2 {
		t.Errorf("%g calls per object, want 2", got)
	}
	if text := r.String(); strings.Count(text, " 8.00 ") != int(legs) || strings.Count(text, "\n") != 3 {
		t.Errorf("not a table of three lines with a ratio for each leg:\n%s", text)
	}
}
