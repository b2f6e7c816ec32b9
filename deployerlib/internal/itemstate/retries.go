// SPDX-License-Identifier: Apache-2.0

package itemstate

import "time"

// Retries contains the counters that determine the delay before the next attempt.
type Retries struct {
	// Failures is the number of consecutive failed attempts.
	Failures int
	// Immediate is the number of consecutive attempts that requested another attempt immediately.
	Immediate int
}

// retries contains the counters of an item and the time of its abort.
type retries struct {
	Retries
	abortSeen time.Time // when AbortDeadline was first called for the current abort; zero if no abort is requested
}

// End describes how an attempt ended. It is used to update the counters.
type End struct {
	// Failed is set if the attempt counts as a failure for the backoff.
	Failed bool
	// Settled is set if nothing is left to do. In this case, the number of failures is reset unless Failed is set too.
	Settled bool
	// Immediate is set if the next attempt is due immediately.
	Immediate bool
}

// count updates the counters at the end of an attempt.
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
