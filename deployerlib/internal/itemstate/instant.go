// SPDX-License-Identifier: Apache-2.0

package itemstate

import "time"

// instant is a time that takes 8 bytes, a third of a time.Time. There is an Item for each deploy item in the cache. The
// zero value is the zero time. An instant is compared only with other times of the process's clock: like these, it does
// not depend on changes of the wall clock, so it may differ from the timestamps of an API server.
type instant time.Duration

// origin is the time from which instants are counted. It has a monotonic clock reading.
var origin = time.Now() //nolint:forbidigo // any time of the process will do

func toInstant(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	if since := instant(t.Sub(origin)); since != 0 {
		return since
	}
	return 1
}

// toTime returns the time.
func (i instant) toTime() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return origin.Add(time.Duration(i))
}
