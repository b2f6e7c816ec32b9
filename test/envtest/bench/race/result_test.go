// SPDX-License-Identifier: Apache-2.0

package race

import (
	"strings"
	"testing"
	"time"
)

func TestResult(t *testing.T) {
	r := newResult([]Contender{{Name: "slow"}, {Name: "fast"}})
	for leg := range legs {
		for _, factor := range []time.Duration{10, 4, 18} { // the machine is slower in some rounds
			r.add("slow", leg, lap{took: 500 * time.Millisecond * factor, calls: 20, objects: 10})
			r.add("fast", leg, lap{took: 100 * time.Millisecond * factor, calls: 5, objects: 10})
		}
		r.add("slow", leg, lap{took: 9 * time.Second, calls: 20, objects: 10})
		r.add("fast", leg, lap{took: 9 * time.Second, calls: 5, objects: 10})
	}
	if got := r.PerSecond("fast", Nothing); got < 7.7 || got > 7.8 {
		t.Errorf("%g objects/s, want the median of the rounds, 7.78", got)
	}
	if got := r.Ratio("fast", "slow", Install); got != 5 {
		t.Errorf("ratio %g, want 5", got)
	}
	if got := r.Calls("slow", Install); got != 2 {
		t.Errorf("%g calls per object, want 2", got)
	}
	if text := r.String(); strings.Count(text, " 5.00 ") != int(legs) || strings.Count(text, "\n") != 3 {
		t.Errorf("not a table of three lines with a ratio for each leg:\n%s", text)
	}
}
