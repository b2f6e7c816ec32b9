// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// failuresUntilDown is the number of consecutive requests without a response after which a target counts as down.
const failuresUntilDown = 3

// stalledTimeout and slowTimeout are how long a request may be in progress before its target counts as stalled and as
// unhealthy. The time starts again whenever the target completes the response to another request.
const stalledTimeout, slowTimeout = 100 * time.Millisecond, 2 * time.Second

// healthTracker tracks whether a target responds. While the target is down, only one request is sent at a time, and the
// pause between two requests grows. A healthTracker is safe for concurrent use.
type healthTracker struct {
	minPause, maxPause time.Duration // the shortest and the longest pause

	mu           sync.Mutex
	failures     int // number of consecutive requests without a complete response
	isDiscovered bool
	isDown       bool
	isTrying     bool
	pause        time.Duration
	next         time.Time
	lastErr      error

	requests  uint64
	pending   map[uint64]time.Time // start times of the requests without a complete response
	completed time.Time            // time of the last complete response
}

// acquire returns nil if a request may be made. The caller must then call recordResult or release.
func (h *healthTracker) acquire(now time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isDown {
		return nil
	}
	if h.isTrying || now.Before(h.next) {
		return h.newUnreachableError(now)
	}
	h.isTrying = true
	return nil
}

// recordResult records the result of an admitted request. The argument err is nil if the target has sent a complete
// response, whatever the response contains.
func (h *healthTracker) recordResult(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isTrying = false
	if err == nil {
		h.failures, h.isDown, h.lastErr, h.completed = 0, false, nil, now
		if h.isDiscovered { // before that, one response does not reset the pause, so that the target is not called in a loop
			h.pause = 0
		}
		return
	}
	h.failures++
	h.lastErr = err
	if h.isDown || h.failures >= failuresUntilDown {
		h.extendPause(now)
	}
}

// release records that an admitted request ended without a result, for example because its caller gave up.
func (h *healthTracker) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isTrying = false
}

// markDown marks the target as down immediately.
func (h *healthTracker) markDown(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isTrying, h.lastErr = false, err
	h.extendPause(now)
}

// markDiscovered records that the first discovery has succeeded. It also forgets all failures.
func (h *healthTracker) markDiscovered() {
	h.reset()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isDiscovered = true
}

// reset forgets all failures, for example because there are new credentials.
func (h *healthTracker) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures, h.isDown, h.isTrying, h.pause, h.lastErr = 0, false, false, 0, nil
}

// checkDown returns the reason why the target is down, or nil if it is up. The second result reports whether the next
// attempt to reach the target is due.
func (h *healthTracker) checkDown(now time.Time) (why *UnreachableError, due bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.isDown {
		return nil, false
	}
	return h.newUnreachableError(now), !h.isTrying && !now.Before(h.next)
}

func (h *healthTracker) extendPause(now time.Time) {
	if h.isDown && now.Before(h.next) {
		return // the requests that were in progress when the target went down must not prolong the pause
	}
	h.isDown = true
	h.pause = min(max(2*h.pause, h.minPause), h.maxPause)
	h.next = now.Add(h.pause - time.Duration(rand.Int64N(int64(h.pause)/10+1)))
}

func (h *healthTracker) newUnreachableError(now time.Time) *UnreachableError {
	return &UnreachableError{RetryAfter: max(h.next.Sub(now), 100*time.Millisecond), Err: h.lastErr}
}

// getHealth returns the health at the given time.
func (h *healthTracker) getHealth(now time.Time) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isDown || h.failures > 0 {
		return HealthBad
	}
	switch waited := h.getWaitTime(now); {
	case waited >= slowTimeout:
		return HealthBad
	case waited >= stalledTimeout:
		return HealthStalled
	case !h.isDiscovered:
		return HealthUnknown
	}
	return HealthGood
}

// getWaitTime returns how long a request has been in progress since the last complete response. The caller holds the
// lock.
func (h *healthTracker) getWaitTime(now time.Time) (longest time.Duration) {
	for _, since := range h.pending {
		if since.Before(h.completed) {
			since = h.completed
		}
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// pendingRequest records when one request waits for its target. healthTracker uses this to detect slow targets.
type pendingRequest struct {
	h   *healthTracker
	clk clock.PassiveClock
	id  uint64
}

// startRequest records that a request is in progress. The request counts as in progress until Suspend is called.
func (h *healthTracker) startRequest(clk clock.PassiveClock) *pendingRequest {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests++
	t := &pendingRequest{h: h, clk: clk, id: h.requests}
	if h.pending == nil {
		h.pending = map[uint64]time.Time{}
	}
	h.pending[t.id] = clk.Now()
	return t
}

// Suspend records that the request is not waiting for its target: it has ended, or it waits until the deployer has
// memory for the response.
func (r *pendingRequest) Suspend() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	delete(r.h.pending, r.id)
}

// Resume records that the request waits for its target again.
func (r *pendingRequest) Resume() {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	r.h.pending[r.id] = r.clk.Now()
}

// Complete records that the response has arrived completely. Call it before the request waits for memory of the
// deployer. That wait does not count as slowness of the target.
func (r *pendingRequest) Complete() {
	r.Suspend()
	r.h.recordResult(r.clk.Now(), nil)
}

// HandleLimitError records that a watch has exceeded a limit.
func (r *pendingRequest) HandleLimitError(err error) { r.h.markDown(r.clk.Now(), err) }
