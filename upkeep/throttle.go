// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// gather is how long the first event waits for those that come with it.
	gather = 50 * time.Millisecond
	// wakeEvery is how often events wake a waiting item at most.
	wakeEvery = time.Second
	// steadyWakes is how many wakes come that fast although nothing that is waited for changes: a rollout that takes a
	// few seconds is noticed within one second of its end.
	steadyWakes = 10
	// wakeSlowest is how often they do if events keep coming after that.
	wakeSlowest = 8 * time.Second
)

// throttle makes few wakes of many events. Each event is followed by a wake: soon after a time without events, else
// wakeEvery after the wake before. If events keep coming and the reason to wait stays the same, that time doubles up to
// wakeSlowest after steadyWakes wakes.
type throttle struct {
	clock clock.WithDelayedExecution
	wake  func()

	mu     sync.Mutex
	reason string
	every  time.Duration
	wakes  int         // in a row, since the last quiet time or change of the reason
	last   time.Time   // the wake that was planned last
	timer  clock.Timer // of that wake
}

func newThrottle(clk clock.WithDelayedExecution, wake func()) *throttle {
	return &throttle{clock: clk, wake: wake, every: wakeEvery}
}

// event leads to a wake.
func (t *throttle) event() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	next := t.last.Add(t.every)
	switch {
	case now.Before(t.last):
		return // the wake that is planned comes after this event
	case !now.Before(next):
		t.every, t.wakes, next = wakeEvery, 0, now.Add(gather)
	case t.wakes >= steadyWakes:
		t.every = min(2*t.every, wakeSlowest)
	}
	t.wakes++
	t.plan(now, next)
}

// waitsFor notes why the item waits. With another reason than before it goes on at full speed.
func (t *throttle) waitsFor(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reason == reason {
		return
	}
	t.reason, t.every, t.wakes = reason, wakeEvery, 0
	now := t.clock.Now()
	if soon := now.Add(wakeEvery); soon.Before(t.last) {
		t.timer.Stop()
		t.plan(now, soon)
	}
}

// plan plans a wake. The caller holds mu.
func (t *throttle) plan(now, at time.Time) {
	t.last, t.timer = at, t.clock.AfterFunc(at.Sub(now), t.wake)
}

// stop drops the wake that is planned.
func (t *throttle) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && t.timer.Stop() {
		t.last = t.clock.Now()
	}
}
