// SPDX-License-Identifier: Apache-2.0

package itemstate

import "time"

// Retries counts what the delay before the next attempt depends on.
type Retries struct {
	// Failures is the number of failed attempts in a row.
	Failures int
	// Immediate is the number of attempts in a row that asked for another one at once.
	Immediate int
}

// retries are the counters of an item and the time of its abort.
type retries struct {
	Retries
	abortSeen time.Time // when an abort was first seen
}

// End is how an attempt ended, as far as the counters are concerned.
type End struct {
	// Failed is set if the attempt counts for the backoff.
	Failed bool
	// Settled is set if nothing is left to do. It resets the failures unless Failed is set.
	Settled bool
	// Immediate is set if the next attempt is due at once.
	Immediate bool
}

// count takes note of the end of an attempt.
func (r *retries) count(e End) Retries {
	switch {
	case e.Failed:
		r.Failures++
	case e.Settled:
		r.Failures, r.abortSeen = 0, time.Time{}
	}
	if e.Immediate {
		r.Immediate++
	} else {
		r.Immediate = 0
	}
	return r.Retries
}
