// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// throttled is a throttle that records the times of its wakes.
type throttled struct {
	*throttle
	clock *clocktesting.FakeClock
	wakes []time.Duration
}

func newThrottled() *throttled {
	t := &throttled{clock: clocktesting.NewFakeClock(noon)}
	// The function must not call the fake clock, which holds its own lock. It therefore records the planned time of the
	// wake.
	t.throttle = newThrottle(t.clock, func() { t.wakes = append(t.wakes, t.last.Sub(noon)) })
	return t
}

// pass advances the clock in small steps. The function `happens` decides in which steps an event occurs.
func (t *throttled) pass(d time.Duration, happens func(at time.Duration) bool) {
	const step = 10 * time.Millisecond
	for range d / step {
		if at := t.clock.Now().Sub(noon); happens != nil && happens(at) {
			t.event()
		}
		t.clock.Step(step)
	}
}

func always(time.Duration) bool { return true }

func TestThrottle(t *testing.T) {
	check := func(t *testing.T, th *throttled, want ...time.Duration) {
		t.Helper()
		if diff := cmp.Diff(want, th.wakes); diff != "" {
			t.Error(diff)
		}
	}
	t.Run("wakes soon after the first event, and never without one [F61]", func(t *testing.T) {
		th := newThrottled()
		th.pass(time.Second, nil)
		check(t, th)
		th.event()
		th.pass(time.Minute, nil)
		check(t, th, time.Second+gather)
		th.event()
		th.pass(time.Minute, nil)
		check(t, th, time.Second+gather, time.Minute+time.Second+gather)
	})
	t.Run("wakes less and less often while nothing else changes [F61]", func(t *testing.T) {
		th := newThrottled()
		th.pass(50*time.Second, always)
		s := time.Second
		var want []time.Duration
		for i := range 10 {
			want = append(want, gather+time.Duration(i)*s)
		}
		check(t, th, append(want, gather+10*s, gather+12*s, gather+16*s, gather+24*s, gather+32*s, gather+40*s, gather+48*s)...)
	})
	t.Run("wakes each second while the reason changes [F61]", func(t *testing.T) {
		th := newThrottled()
		for i := range 10 {
			th.pass(time.Second, always)
			th.setReason(string(rune('a' + i)))
		}
		if n := len(th.wakes); n < 9 || n > 10 {
			t.Errorf("%d wakes in 10 s: %v", n, th.wakes)
		}
	})
	t.Run("goes on at full speed when the reason changes [F61]", func(t *testing.T) {
		th := newThrottled()
		th.setReason("a")
		th.pass(20*time.Second, always)
		th.setReason("b")
		before := len(th.wakes)
		th.pass(wakeEvery+gather, nil)
		if len(th.wakes) != before+1 {
			t.Errorf("%v", th.wakes)
		}
	})
	t.Run("never loses the last event [F61]", func(t *testing.T) {
		for last := range 1200 {
			th := newThrottled()
			end := time.Duration(last) * 10 * time.Millisecond
			th.pass(end+10*time.Millisecond, func(at time.Duration) bool { return at <= end })
			th.pass(wakeSlowest+gather, nil)
			if len(th.wakes) == 0 || th.wakes[len(th.wakes)-1] < end {
				t.Fatalf("the last event is at %s, the wakes at %v", end, th.wakes)
			}
		}
	})
	t.Run("wakes nothing after it was stopped [F61]", func(t *testing.T) {
		th := newThrottled()
		th.event()
		th.stop()
		th.pass(time.Minute, nil)
		check(t, th)
		th.event()
		th.pass(time.Minute, nil)
		check(t, th, time.Minute+gather)
	})
}
