// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"strconv"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// newItem returns an item without a library.
func newItem(now time.Time) *item {
	s := newItems()
	s.clock, s.trigger = clocktesting.NewFakeClock(now), func(types.NamespacedName) {}
	return s.get(&lsv1alpha1.DeployItem{})
}

// of returns a drift of an object that is to be corrected after a while.
func of(name string, wait time.Duration) drift {
	object := watch.Object{NamespacedName: types.NamespacedName{Name: name}}
	return drift{Event: watch.Event{Object: object, What: watch.Changed}, notBefore: noon.Add(wait)}
}

// TestDriftSurvivesAFailedRun ensures that a run that cannot correct a drift does not forget it, because a watch
// reports each drift once.
func TestDriftSurvivesAFailedRun(t *testing.T) {
	now := noon
	it := newItem(now)
	for i := range maxDrifts + 2 {
		it.wants.add(of(strconv.Itoa(i), 0))
	}
	it.setThorough()
	taken := it.take(false, now)
	if due, _ := it.due(); due || len(taken.drifts) != maxDrifts || !taken.thorough {
		t.Fatalf("took %d drifts, thorough %t", len(taken.drifts), taken.thorough)
	}
	it.wants.add(of("gone", -time.Minute))
	it.putBack(taken)
	due, at := it.due()
	again := it.take(false, now)
	if !due || !at.Equal(now.Add(-time.Minute)) || !again.thorough || len(again.drifts) != maxDrifts {
		t.Errorf("due %t at %s: %v", due, at, again)
	}
	if last := again.drifts[0]; last.Object.Name != "gone" && again.drifts[maxDrifts-1].Object.Name != "gone" {
		t.Errorf("the drift that is due first is dropped: %v", again.drifts)
	}
}

// TestDriftIsHealedInTime ensures that the delay of one object does not delay others.
func TestDriftIsHealedInTime(t *testing.T) {
	now := noon
	full := []drift{}
	for i := range maxDrifts {
		full = append(full, of(strconv.Itoa(i), time.Minute))
	}
	gone := of("a", 0)
	gone.What = watch.Gone
	tests := map[string]struct {
		drifts []drift
		due    time.Duration
		healed int // corrected by a background run
		left   int
	}{
		"nothing":                              {},
		"one":                                  {drifts: []drift{of("a", 0)}, healed: 1},
		"a fight":                              {drifts: []drift{of("a", time.Minute)}, due: time.Minute, left: 1},
		"a fight keeps nobody else waiting":    {drifts: []drift{of("a", time.Minute), of("b", 0)}, healed: 1, left: 1},
		"two fights, the earlier one":          {drifts: []drift{of("a", time.Hour), of("b", time.Minute)}, due: time.Minute, left: 2},
		"a fight waits with all of the object": {drifts: []drift{gone, of("a", time.Minute)}, due: time.Minute, left: 2},
		"many fights make room for others":     {drifts: append(full, of("b", 0)), healed: 1, left: maxDrifts - 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			it := newItem(now)
			for _, d := range tt.drifts {
				it.wants.add(d)
			}
			wanted, at := it.due()
			if wanted != (len(tt.drifts) > 0) || wanted && !at.Equal(now.Add(tt.due)) {
				t.Errorf("a run is wanted: %t, %s", wanted, at.Sub(now))
			}
			taken := it.take(true, now)
			if len(taken.drifts) != tt.healed || len(it.wants.drifts) != tt.left || len(taken.later) != min(tt.left, len(it.wants.heals())) {
				t.Errorf("the run heals %v and leaves %v", taken.drifts, it.wants.drifts)
			}
		})
	}
}
