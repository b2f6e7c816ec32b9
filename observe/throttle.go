// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// gatherDelay is the time between the first of several events and the call of the function `wake`. Further events
	// within this time cause no additional call.
	gatherDelay = 50 * time.Millisecond
	// minWakeInterval is the minimum time between two wakes of a waiting item. A wake is a call of the function `wake`.
	minWakeInterval = time.Second
	// wakesUntilSlower is the number of wakes after which the interval between wakes grows if the reason for waiting stays
	// the same. It is so large that the interval does not grow during a rollout of a few seconds.
	wakesUntilSlower = 10
	// maxWakeInterval is the maximum time between two wakes if events continue and the reason for waiting stays the same.
	maxWakeInterval = 8 * time.Second
)

// throttle reduces many events to few wakes. A wake is a call of the function `wake`. There is always a wake after the
// last event. After a time without events, the wake follows an event almost immediately. Otherwise, there is an
// interval of at least minWakeInterval between two wakes. If events continue and the reason for waiting does not
// change, the interval doubles with each wake after the first wakesUntilSlower wakes, up to maxWakeInterval.
type throttle struct {
	clock clock.WithDelayedExecution
	wake  func()

	mu     sync.Mutex
	reason string
	every  time.Duration
	wakes  int         // the number of wakes since the last quiet time or the last change of the reason
	last   time.Time   // the time of the last planned wake
	timer  clock.Timer // fires at the time in the field `last`
}

func newThrottle(clk clock.WithDelayedExecution, wake func()) *throttle {
	return &throttle{clock: clk, wake: wake, every: minWakeInterval}
}

// event plans a wake because an event has occurred.
func (t *throttle) event() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	next := t.last.Add(t.every)
	switch {
	case now.Before(t.last):
		return // a wake that follows this event is planned already
	case !now.Before(next):
		t.every, t.wakes, next = minWakeInterval, 0, now.Add(gatherDelay)
	case t.wakes >= wakesUntilSlower:
		t.every = min(2*t.every, maxWakeInterval)
	}
	t.wakes++
	t.setTimer(now, next)
}

// setReason records the reason why the item waits. If the reason changed, it resets the interval to minWakeInterval.
func (t *throttle) setReason(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reason == reason {
		return
	}
	t.reason, t.every, t.wakes = reason, minWakeInterval, 0
	now := t.clock.Now()
	if soon := now.Add(minWakeInterval); soon.Before(t.last) {
		t.timer.Stop()
		t.setTimer(now, soon)
	}
}

// setTimer plans a wake for a given time. The caller holds mu.
func (t *throttle) setTimer(now, at time.Time) {
	t.last, t.timer = at, t.clock.AfterFunc(at.Sub(now), t.wake)
}

// stop cancels the planned wake.
func (t *throttle) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && t.timer.Stop() {
		t.last = t.clock.Now()
	}
}
