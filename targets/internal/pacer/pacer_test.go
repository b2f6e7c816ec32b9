// SPDX-License-Identifier: Apache-2.0

package pacer

import (
	"testing"
	"time"
)

// TestPacerDelaysFailingWatches checks that a watch is opened at most 100 times a minute, regardless of how it ends. It
// also checks that working watches are not delayed.
func TestPacerDelaysFailingWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		life   time.Duration
		failed bool
		most   int
		least  int
	}{
		"the server ends at once [F6]":              {0, true, 10, 4},
		"the server ends after a second [F6]":       {time.Second, true, 10, 4},
		"the client ends at once [F6]":              {0, false, 100, 60},
		"the server ends the watch after 30 s [F6]": {30 * time.Second, true, 3, 2},
	} {
		t.Run("paces a watch that "+name, func(t *testing.T) {
			p := New()
			start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			now, opened := start, 0
			for now.Sub(start) < time.Minute {
				now = now.Add(p.getDelay("w", now))
				if now.Sub(start) >= time.Minute {
					break
				}
				opened++
				began := now
				now = now.Add(tc.life)
				p.RecordEnd("w", began, now, tc.failed)
				now = now.Add(time.Millisecond)
			}
			if opened > tc.most || opened < tc.least {
				t.Errorf("opened %d times in a minute, want %d to %d", opened, tc.least, tc.most)
			}
		})
	}
}
