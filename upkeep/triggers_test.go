// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// newQueue returns a queue whose trigger has no effect.
func newQueue() *queue {
	return &queue{clock: clocktesting.NewFakeClock(noon), trigger: func() {}}
}

// driftOf returns a drift of an object. The correction of the drift is due after the given time.
func driftOf(name string, wait time.Duration) drift {
	object := watch.Object{NamespacedName: types.NamespacedName{Name: name}}
	return drift{Event: watch.Event{Object: object, What: watch.Changed}, notBefore: noon.Add(wait)}
}

// TestDriftSurvivesAFailedRun ensures that a drift that a run could not correct remains in the queue, because a watch
// reports each drift only once.
func TestDriftSurvivesAFailedRun(t *testing.T) {
	const objects = 10
	q := newQueue()
	for i := range objects {
		q.next.add(driftOf(strconv.Itoa(i), 0))
	}
	q.setThorough()
	taken, _ := q.take(false)
	if due, _ := q.due(); due || len(taken.drifts) != objects || !taken.thorough {
		t.Fatalf("took %d drifts, thorough %t", len(taken.drifts), taken.thorough)
	}
	q.next.add(driftOf("gone", -time.Minute))
	q.putBack(taken)
	due, at := q.due()
	again, _ := q.take(false)
	if !due || !at.Equal(noon.Add(-time.Minute)) || !again.thorough || len(again.drifts) != objects+1 {
		t.Errorf("due %t at %s: %v", due, at, again)
	}
}

// TestDriftIsHealedInTime ensures that a delayed correction of one object does not delay the corrections of other
// objects.
func TestDriftIsHealedInTime(t *testing.T) {
	many := []drift{}
	for i := range 50 {
		many = append(many, driftOf(strconv.Itoa(i), time.Minute))
	}
	gone := driftOf("a", 0)
	gone.What = watch.Gone
	tests := map[string]struct {
		drifts []drift
		due    time.Duration
		healed int // the number of drifts that a background run corrects
		left   int // the number of drifts that remain in the queue
	}{
		"nothing":                              {},
		"one":                                  {drifts: []drift{driftOf("a", 0)}, healed: 1},
		"a fight":                              {drifts: []drift{driftOf("a", time.Minute)}, due: time.Minute, left: 1},
		"a fight does not delay other objects": {drifts: []drift{driftOf("a", time.Minute), driftOf("b", 0)}, healed: 1, left: 1},
		"two fights, the earlier one":          {drifts: []drift{driftOf("a", time.Hour), driftOf("b", time.Minute)}, due: time.Minute, left: 2},
		"a fight waits with all of the object": {drifts: []drift{gone, driftOf("a", time.Minute)}, due: time.Minute, left: 2},
		"many fights and another object":       {drifts: append(many, driftOf("b", 0)), healed: 1, left: 50},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newQueue()
			for _, d := range tt.drifts {
				q.next.add(d)
			}
			wanted, at := q.due()
			if wanted != (len(tt.drifts) > 0) || wanted && !at.Equal(noon.Add(tt.due)) {
				t.Errorf("a run is wanted: %t, %s", wanted, at.Sub(noon))
			}
			taken, later := q.take(true)
			if len(taken.drifts) != tt.healed || len(q.next.drifts) != tt.left || len(later) != len(q.next.times()) {
				t.Errorf("the run heals %v and leaves %v", taken.drifts, q.next.drifts)
			}
		})
	}
}

// TestDriftOfManyObjectsIsHealedInTime ensures that the number of drifted objects does not matter.
func TestDriftOfManyObjectsIsHealedInTime(t *testing.T) {
	t.Run("keeps the correction time of each of many objects [F23]", func(t *testing.T) {
		const objects = 50
		q := newQueue()
		counted := map[watch.Object]int{}
		for range 2 { // the second drift of an object precedes its correction, so it does not change the time
			for i := range objects {
				q.drifted(driftOf(strconv.Itoa(i), 0).Event, func(e watch.Event) watch.Heal {
					counted[e.Object]++
					return watch.Heal{Delay: time.Duration(i) * time.Second, Fight: true}
				})
			}
		}
		for object, times := range counted {
			if times != 1 {
				t.Errorf("%s is counted %d times", object, times)
			}
		}
		for i := range objects {
			q.clock.(*clocktesting.FakeClock).SetTime(noon.Add(time.Duration(i) * time.Second))
			if taken, later := q.take(true); len(taken.drifts) != 1 || len(later) != objects-i-1 {
				t.Errorf("after %d s, the run heals %v and leaves %d", i, taken.drifts, len(later))
			}
		}
	})
}

// movingClock is a clock that advances by one second in each call of Now.
type movingClock struct{ *clocktesting.FakeClock }

func (c movingClock) Now() time.Time {
	c.Step(time.Second)
	return c.FakeClock.Now()
}

// TestDriftBecomesDueDuringTake covers a drift that becomes due immediately after a run has taken the drifts that are
// due. The drift must not be lost.
func TestDriftBecomesDueDuringTake(t *testing.T) {
	triggered := 0
	q := &queue{clock: movingClock{clocktesting.NewFakeClock(noon)}, trigger: func() { triggered++ }}
	q.next.add(driftOf("a", 1500*time.Millisecond)) // due between the first call of Now, at 1 s, and the second one, at 2 s
	if taken, later := q.take(true); len(taken.drifts) != 0 || len(later) != 1 || triggered != 1 {
		t.Errorf("took %d drifts, left %d, triggered %d times, want 0, 1 and 1", len(taken.drifts), len(later), triggered)
	}
}
