// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// failuresUntilDown is the number of consecutive requests without a response after which a target counts as down.
const failuresUntilDown = 3

// UnreachableError is returned if a target cannot be used at the moment. Until RetryAfter has passed, every use of the
// client for this target fails immediately, without a request. Use errors.As to find the error.
type UnreachableError struct {
	// RetryAfter is how long to wait before the next attempt. It is greater than zero.
	RetryAfter time.Duration
	// Err is the last failure. It is nil while the first attempt to connect is still in progress.
	Err error
}

func (e *UnreachableError) Error() string {
	if e.Err == nil {
		return "target does not answer yet"
	}
	return fmt.Sprintf("target cannot be reached: %v", e.Err)
}

// Unwrap returns the last failure.
func (e *UnreachableError) Unwrap() error { return e.Err }

// health tracks whether a target responds. While the target is down, only one request is sent at a time, and the pause
// between two requests grows. A health is safe for concurrent use.
type health struct {
	first, most time.Duration // the shortest and the longest pause

	mu       sync.Mutex
	failures int // number of consecutive requests without a complete response
	settled  bool
	isDown   bool
	trying   bool
	pause    time.Duration
	next     time.Time
	last     error

	requests  uint64
	underWay  map[uint64]time.Time // start times of the requests without a complete response
	completed time.Time            // time of the last complete response
}

// admit returns nil if a request may be made. The caller must then call report or withdraw.
func (h *health) admit(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isDown {
		return nil
	}
	if h.trying || now.Before(h.next) {
		return h.unreachable(now)
	}
	h.trying = true
	return nil
}

// report records the result of an admitted request. The argument err is nil if the target has sent a complete response,
// whatever the response contains.
func (h *health) report(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying = false
	if err == nil {
		h.failures, h.isDown, h.last, h.completed = 0, false, nil, now
		if h.settled { // before that, one response does not reset the pause, so that the target is not called in a loop
			h.pause = 0
		}
		return
	}
	h.failures++
	h.last = err
	if h.isDown || h.failures >= failuresUntilDown {
		h.fall(now)
	}
}

// withdraw records that an admitted request ended without a result, for example because its caller gave up.
func (h *health) withdraw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying = false
}

// trip marks the target as down immediately.
func (h *health) trip(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying, h.last = false, err
	h.fall(now)
}

// settle records that the first discovery has succeeded. It also forgets all failures.
func (h *health) settle() {
	h.reset()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = true
}

// reset forgets all failures, for example because there are new credentials.
func (h *health) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.isDown, h.trying, h.pause, h.last = 0, false, false, 0, nil
}

// down returns the reason why the target is down, or nil if it is up. The second result reports whether the next
// attempt to reach the target is due.
func (h *health) down(now time.Time) (why *UnreachableError, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isDown {
		return nil, false
	}
	return h.unreachable(now), !h.trying && !now.Before(h.next)
}

func (h *health) fall(now time.Time) {
	if h.isDown && now.Before(h.next) {
		return // the requests that were in progress when the target went down must not prolong the pause
	}
	h.isDown = true
	h.pause = min(max(2*h.pause, h.first), h.most)
	h.next = now.Add(h.pause - time.Duration(rand.Int64N(int64(h.pause)/10+1)))
}

func (h *health) unreachable(now time.Time) *UnreachableError {
	return &UnreachableError{RetryAfter: max(h.next.Sub(now), 100*time.Millisecond), Err: h.last}
}
