// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
)

// newTriggers returns Triggers that trigger nothing.
func newTriggers() *Triggers {
	return NewTriggers(clocktesting.NewFakeClock(startTime), func() {})
}

// newPendingDrift returns a drift of an object. The correction of the drift is due after the given time.
func newPendingDrift(name string, wait time.Duration) PendingDrift {
	object := Object{NamespacedName: types.NamespacedName{Name: name}}
	return PendingDrift{Drift: Drift{Object: object, Reason: DriftReasonChanged}, NotBefore: startTime.Add(wait)}
}

// TestDriftSurvivesAFailedRun ensures that a drift that a run could not correct remains in the queue, because a watch
// reports each drift only once.
func TestDriftSurvivesAFailedRun(t *testing.T) {
	const objects = 10
	q := newTriggers()
	for i := range objects {
		q.next.add(newPendingDrift(strconv.Itoa(i), 0))
	}
	q.ForceResync()
	taken, _ := q.TakeCauses(false)
	if due, _ := q.CheckDue(); due || len(taken.Drifts) != objects || !taken.ForceResync {
		t.Fatalf("took %d drifts, thorough %t", len(taken.Drifts), taken.ForceResync)
	}
	q.next.add(newPendingDrift("gone", -time.Minute))
	q.ReturnCauses(taken)
	due, at := q.CheckDue()
	again, _ := q.TakeCauses(false)
	if !due || !at.Equal(startTime.Add(-time.Minute)) || !again.ForceResync || len(again.Drifts) != objects+1 {
		t.Errorf("due %t at %s: %v", due, at, again)
	}
}

// TestDriftIsCorrectedInTime ensures that a delayed correction of one object does not delay the corrections of other
// objects.
func TestDriftIsCorrectedInTime(t *testing.T) {
	many := []PendingDrift{}
	for i := range 50 {
		many = append(many, newPendingDrift(strconv.Itoa(i), time.Minute))
	}
	gone := newPendingDrift("a", 0)
	gone.Reason = DriftReasonDeleted
	tests := map[string]struct {
		drifts []PendingDrift
		due    time.Duration
		healed int // the number of drifts that a background run corrects
		left   int // the number of drifts that remain in the queue
	}{
		"nothing":                              {},
		"one":                                  {drifts: []PendingDrift{newPendingDrift("a", 0)}, healed: 1},
		"a fight":                              {drifts: []PendingDrift{newPendingDrift("a", time.Minute)}, due: time.Minute, left: 1},
		"a fight does not delay other objects": {drifts: []PendingDrift{newPendingDrift("a", time.Minute), newPendingDrift("b", 0)}, healed: 1, left: 1},
		"two fights, the earlier one":          {drifts: []PendingDrift{newPendingDrift("a", time.Hour), newPendingDrift("b", time.Minute)}, due: time.Minute, left: 2},
		"a fight waits with all of the object": {drifts: []PendingDrift{gone, newPendingDrift("a", time.Minute)}, due: time.Minute, left: 2},
		"many fights and another object":       {drifts: append(many, newPendingDrift("b", 0)), healed: 1, left: 50},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			q := newTriggers()
			for _, d := range tt.drifts {
				q.next.add(d)
			}
			wanted, at := q.CheckDue()
			if wanted != (len(tt.drifts) > 0) || wanted && !at.Equal(startTime.Add(tt.due)) {
				t.Errorf("a run is wanted: %t, %s", wanted, at.Sub(startTime))
			}
			taken, later := q.TakeCauses(true)
			if len(taken.Drifts) != tt.healed || len(q.next.Drifts) != tt.left || len(later) != len(q.next.listCorrectionTimes()) {
				t.Errorf("the run heals %v and leaves %v", taken.Drifts, q.next.Drifts)
			}
		})
	}
}

// TestDriftOfManyObjectsIsCorrectedInTime ensures that the number of drifted objects does not matter.
func TestDriftOfManyObjectsIsCorrectedInTime(t *testing.T) {
	t.Run("keeps the correction time of each of many objects [F23]", func(t *testing.T) {
		const objects = 50
		q := newTriggers()
		counted := map[Object]int{}
		for range 2 { // the second drift of an object precedes its correction, so it does not change the time
			for i := range objects {
				q.AddDrift(newPendingDrift(strconv.Itoa(i), 0).Drift, func(e Drift) Correction {
					counted[e.Object]++
					return Correction{Delay: time.Duration(i) * time.Second, Fight: true}
				})
			}
		}
		for object, times := range counted {
			if times != 1 {
				t.Errorf("%s is counted %d times", object, times)
			}
		}
		for i := range objects {
			q.clock.(*clocktesting.FakeClock).SetTime(startTime.Add(time.Duration(i) * time.Second))
			if taken, later := q.TakeCauses(true); len(taken.Drifts) != 1 || len(later) != objects-i-1 {
				t.Errorf("after %d s, the run heals %v and leaves %d", i, taken.Drifts, len(later))
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

// TestDriftBecomesDueDuringTakeCauses covers a drift that becomes due immediately after a run has taken the drifts that
// are due. The drift must not be lost.
func TestDriftBecomesDueDuringTakeCauses(t *testing.T) {
	triggered := 0
	q := NewTriggers(movingClock{clocktesting.NewFakeClock(startTime)}, func() { triggered++ })
	q.next.add(newPendingDrift("a", 1500*time.Millisecond)) // due between the first call of Now, at 1 s, and the second one, at 2 s
	if taken, later := q.TakeCauses(true); len(taken.Drifts) != 0 || len(later) != 1 || triggered != 1 {
		t.Errorf("took %d drifts, left %d, triggered %d times, want 0, 1 and 1", len(taken.Drifts), len(later), triggered)
	}
}
