// SPDX-License-Identifier: Apache-2.0

package testtime

import (
	"testing"
	"time"
)

func TestLoadFactor(t *testing.T) {
	for name, tc := range map[string]struct {
		load       string
		processors int
		want       float64
	}{
		"Idle":      {"0.10 0.20 0.30 1/300 4711\n", 2, 1},
		"Busy":      {"30.00 9.00 3.00 2/300 4711\n", 2, 15},
		"JustBegun": {"1.00 9.00 3.00 24/300 4711\n", 2, 12},
		"Many":      {"900.00 9.00 3.00 2/300 4711\n", 2, most},
		"Wide":      {"30.00 9.00 3.00 2/300 4711\n", 64, 1},
		"Unknown":   {"", 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := loadFactor([]byte(tc.load), tc.processors); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestScaleTimeout(t *testing.T) {
	if got := ScaleTimeout(time.Second); got < time.Second || got > most*time.Second {
		t.Errorf("got %s", got)
	}
}
