// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// throttleTest is a throttle that records the times of its wakes.
type throttleTest struct {
	*throttle
	clock *clocktesting.FakeClock
	wakes []time.Duration
}

func newThrottleTest() *throttleTest {
	t := &throttleTest{clock: clocktesting.NewFakeClock(startTime)}
	// The function must not call the fake clock, which holds its own lock. It therefore records the planned time of the
	// wake.
	t.throttle = newThrottle(t.clock, func() { t.wakes = append(t.wakes, t.last.Sub(startTime)) })
	return t
}

// step advances the clock in small steps. The function `happens` decides in which steps an event occurs.
func (t *throttleTest) step(d time.Duration, happens func(at time.Duration) bool) {
	const step = 10 * time.Millisecond
	for range d / step {
		if at := t.clock.Now().Sub(startTime); happens != nil && happens(at) {
			t.event()
		}
		t.clock.Step(step)
	}
}

func matchAlways(time.Duration) bool { return true }

func TestThrottle(t *testing.T) {
	check := func(t *testing.T, th *throttleTest, want ...time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, th.wakes); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("wakes soon after the first event, and never without one [F61]", func(t *testing.T) {
		th := newThrottleTest()
		th.step(time.Second, nil)
		check(t, th)
		th.event()
		th.step(time.Minute, nil)
		check(t, th, time.Second+gatherDelay)
		th.event()
		th.step(time.Minute, nil)
		check(t, th, time.Second+gatherDelay, time.Minute+time.Second+gatherDelay)
	})
	t.Run("wakes less and less often while nothing else changes [F61]", func(t *testing.T) {
		th := newThrottleTest()
		th.step(50*time.Second, matchAlways)
		s := time.Second
		var want []time.Duration
		for i := range 10 {
			want = append(want, gatherDelay+time.Duration(i)*s)
		}
		check(t, th, append(want, gatherDelay+10*s, gatherDelay+12*s, gatherDelay+16*s, gatherDelay+24*s, gatherDelay+32*s, gatherDelay+40*s, gatherDelay+48*s)...)
	})
	t.Run("wakes each second while the reason changes [F61]", func(t *testing.T) {
		th := newThrottleTest()
		for i := range 10 {
			th.step(time.Second, matchAlways)
			th.setReason(string(rune('a' + i)))
		}
		if n := len(th.wakes); n < 9 || n > 10 {
			t.Errorf("%d wakes in 10 s: %v", n, th.wakes)
		}
	})
	t.Run("goes on at full speed when the reason changes [F61]", func(t *testing.T) {
		th := newThrottleTest()
		th.setReason("a")
		th.step(20*time.Second, matchAlways)
		th.setReason("b")
		before := len(th.wakes)
		th.step(minWakeInterval+gatherDelay, nil)
		if len(th.wakes) != before+1 {
			t.Errorf("%v", th.wakes)
		}
	})
	t.Run("never loses the last event [F61]", func(t *testing.T) {
		for last := range 1200 {
			th := newThrottleTest()
			end := time.Duration(last) * 10 * time.Millisecond
			th.step(end+10*time.Millisecond, func(at time.Duration) bool { return at <= end })
			th.step(maxWakeInterval+gatherDelay, nil)
			if len(th.wakes) == 0 || th.wakes[len(th.wakes)-1] < end {
				t.Fatalf("the last event is at %s, the wakes at %v", end, th.wakes)
			}
		}
	})
	t.Run("wakes nothing after it was stopped [F61]", func(t *testing.T) {
		th := newThrottleTest()
		th.event()
		th.stop()
		th.step(time.Minute, nil)
		check(t, th)
		th.event()
		th.step(time.Minute, nil)
		check(t, th, time.Minute+gatherDelay)
	})
}
