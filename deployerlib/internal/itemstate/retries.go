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
	busyUntil  instant   // the time until which the calls so far would have lasted at a rate of one call per interval
	firstAbort time.Time // when GetAbortDeadline was first called for the current abort; zero if no abort is requested
}

// jobBurst is the number of calls that triggers may start in quick succession during a job, before the interval between
// two calls applies. It allows a job that consists of several steps to proceed as soon as a step is done.
const jobBurst = 10

// recordCall records a call that began at a given time. It returns the time before which no trigger starts another
// call.
func (r *retries) recordCall(began time.Time, interval time.Duration, background bool) time.Time {
	if background {
		r.busyUntil = 0
		return began.Add(interval)
	}
	busyUntil := r.busyUntil.toTime()
	if busyUntil.Before(began) {
		busyUntil = began
	}
	busyUntil = busyUntil.Add(interval)
	r.busyUntil = toInstant(busyUntil)
	return busyUntil.Add(-(jobBurst - 1) * interval)
}

// AttemptEnd describes how an attempt ended. It is used to update the counters.
type AttemptEnd struct {
	// Failed is set if the attempt counts as a failure for the backoff.
	Failed bool
	// Succeeded is set if nothing is left to do. In this case, the number of failures is reset unless Failed is set too.
	Succeeded bool
	// Immediate is set if the next attempt is due immediately.
	Immediate bool
}

// recordEnd updates the counters at the end of an attempt.
func (r *retries) recordEnd(e AttemptEnd) Retries {
	switch {
	case e.Failed:
		r.Failures++
	case e.Succeeded:
		r.Failures, r.firstAbort = 0, time.Time{}
	}
	if e.Immediate {
		r.Immediate++
	} else {
		r.Immediate = 0
	}
	return r.Retries
}
