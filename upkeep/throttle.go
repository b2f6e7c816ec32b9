// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// gather is how long the first event waits for related ones.
	gather = 50 * time.Millisecond
	// wakeEvery is the shortest time between two wakes of a waiting item.
	wakeEvery = time.Second
	// steadyWakes is how many wakes come that fast although the reason to wait does not change. The end of a rollout
	// that takes a few seconds is noticed within one second.
	steadyWakes = 10
	// wakeSlowest is the longest time between two wakes if events keep coming after that.
	wakeSlowest = 8 * time.Second
)

// throttle turns many events into few wakes. Each event is followed by a wake, soon after a time without events and
// otherwise wakeEvery after the previous wake. If events keep coming and the reason to wait stays the same, that time
// doubles up to wakeSlowest after steadyWakes wakes.
type throttle struct {
	clock clock.WithDelayedExecution
	wake  func()

	mu     sync.Mutex
	reason string
	every  time.Duration
	wakes  int         // in a row, since the last quiet time or change of the reason
	last   time.Time   // the last planned wake
	timer  clock.Timer // of that wake
}

func newThrottle(clk clock.WithDelayedExecution, wake func()) *throttle {
	return &throttle{clock: clk, wake: wake, every: wakeEvery}
}

// event causes a wake.
func (t *throttle) event() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	next := t.last.Add(t.every)
	switch {
	case now.Before(t.last):
		return // the planned wake comes after this event
	case !now.Before(next):
		t.every, t.wakes, next = wakeEvery, 0, now.Add(gather)
	case t.wakes >= steadyWakes:
		t.every = min(2*t.every, wakeSlowest)
	}
	t.wakes++
	t.plan(now, next)
}

// waitsFor records why the item waits. If the reason changed, the throttle returns to full speed.
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

// stop cancels the planned wake.
func (t *throttle) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil && t.timer.Stop() {
		t.last = t.clock.Now()
	}
}
