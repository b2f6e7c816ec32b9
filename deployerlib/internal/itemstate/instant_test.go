// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"testing"
	"time"
)

func TestInstant(t *testing.T) {
	for name, at := range map[string]time.Time{
		"the zero time":                       {},
		"a time after the origin":             origin.Add(time.Hour),
		"a time before the origin":            origin.Add(-time.Hour),
		"a time without a monotonic reading":  origin.Add(time.Minute).Round(0),
		"a time of a fake clock":              time.Date(2000, 1, 2, 3, 4, 5, 6, time.UTC),
		"a time of a clock in another bubble": time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		if got := toInstant(at).toTime(); !got.Equal(at) || got.IsZero() != at.IsZero() {
			t.Errorf("%s: %s became %s", name, at, got)
		}
	}
	if got := toInstant(origin).toTime(); got.IsZero() || got.Sub(origin) > time.Microsecond {
		t.Errorf("the origin became %s", got)
	}
}
