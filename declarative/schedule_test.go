// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule
		next, poll time.Duration
	}{
		"neither the response nor the options set a time":       {schedule{}, 0, pollObserved},
		"the response sets a time [Rx10]":                       {schedule{after: time.Second}, time.Second, time.Second},
		"the options set a time":                                {schedule{resync: time.Hour}, time.Hour, pollObserved},
		"both set a time, and that of the options is sooner":    {schedule{after: 2 * time.Hour, resync: time.Hour}, time.Hour, pollObserved},
		"both set a time, and that of the response is sooner":   {schedule{after: time.Second, resync: time.Hour}, time.Second, time.Second},
		"a child is not observed":                               {schedule{isPartlyWatched: true}, pollUnobserved, pollPartly},
		"a child is not observed, and the response sets a time": {schedule{isPartlyWatched: true, after: 2 * time.Second}, 2 * time.Second, 2 * time.Second},
		"a child is not observed, and the options set a time":   {schedule{isPartlyWatched: true, resync: time.Hour}, pollUnobserved, pollPartly},
		"the response sets a negative time":                     {schedule{after: -time.Second}, 0, pollObserved},
	} {
		t.Run(name, func(t *testing.T) {
			if next, poll := tc.schedule.next(), tc.poll; next != tc.next || tc.schedule.poll() != poll {
				t.Errorf("got next %s and poll %s, want %s and %s", next, tc.schedule.poll(), tc.next, poll)
			}
		})
	}
}
