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
	busy      time.Time // the time until which the calls so far would have lasted at a rate of one call per interval
	abortSeen time.Time // when AbortDeadline was first called for the current abort; zero if no abort is requested
}

// jobBurst is the number of calls that triggers may start in quick succession during a job, before the interval between
// two calls applies. It allows a job that consists of several steps to proceed as soon as a step is done.
const jobBurst = 10

// countCall records a call that began at a given time. It returns the time before which no trigger starts another call.
func (r *retries) countCall(began time.Time, interval time.Duration, background bool) time.Time {
	if background {
		r.busy = time.Time{}
		return began.Add(interval)
	}
	if r.busy.Before(began) {
		r.busy = began
	}
	r.busy = r.busy.Add(interval)
	return r.busy.Add(-(jobBurst - 1) * interval)
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
