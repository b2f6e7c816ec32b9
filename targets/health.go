// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// failuresUntilDown is how many requests in a row must get no answer until a target counts as down.
const failuresUntilDown = 3

// UnreachableError says that a target cannot be used at the moment, and when to try again. Until then every use of
// its client fails at once with this error, without a call. Find it with errors.As.
type UnreachableError struct {
	// RetryAfter is how long to wait; at least a moment.
	RetryAfter time.Duration
	// Err is the last failure; nil while the first connection is still being made.
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

// health knows whether a target answers. While it does not, one request at a time may try, and the pauses between
// them grow. It is safe for concurrent use.
type health struct {
	first, most time.Duration // of the pauses

	mu       sync.Mutex
	failures int // in a row
	settled  bool
	isDown   bool
	trying   bool
	pause    time.Duration
	next     time.Time
	last     error

	requests  uint64
	underWay  map[uint64]time.Time // when each request began that has no complete response yet
	completed time.Time            // the last response
}

// admit returns nil if a request may be made; report must follow.
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

// report says how an admitted request ended: nil if the target completed its response, whatever it said.
func (h *health) report(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying = false
	if err == nil {
		h.failures, h.isDown, h.last, h.completed = 0, false, nil, now
		if h.settled { // else the target may answer with errors only, which must not be asked for in a loop
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

// withdraw says that an admitted request tells nothing about the target: its caller gave up.
func (h *health) withdraw() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying = false
}

// trip takes the target down at once.
func (h *health) trip(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying, h.last = false, err
	h.fall(now)
}

// settle says that the target gave the answers that a client needs to begin.
func (h *health) settle() {
	h.reset()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settled = true
}

// reset forgets all failures, for instance when there are new credentials.
func (h *health) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.isDown, h.trying, h.pause, h.last = 0, false, false, 0, nil
}

// down returns why the target is down, and whether it is time to try; nil if it is not down.
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
		return // what was under way when it fell counts once
	}
	h.isDown = true
	h.pause = min(max(2*h.pause, h.first), h.most)
	h.next = now.Add(h.pause - time.Duration(rand.Int64N(int64(h.pause)/10+1)))
}

func (h *health) unreachable(now time.Time) *UnreachableError {
	return &UnreachableError{RetryAfter: max(h.next.Sub(now), 100*time.Millisecond), Err: h.last}
}
