// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"slices"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// TestDriftSurvivesAFailedRun: a watch tells of each drift once, so a run that could not heal it must not forget it.
func TestDriftSurvivesAFailedRun(t *testing.T) {
	now := time.Unix(0, 0)
	it := newItems().get(&lsv1alpha1.DeployItem{})
	for range maxDrifts + 2 {
		it.drifted(drift{Event: watch.Event{What: watch.Changed}, notBefore: now})
	}
	it.setThorough()
	taken := it.take(false, now)
	if due, _ := it.due(); due || len(taken.drifts) != maxDrifts || !taken.thorough {
		t.Fatalf("took %d drifts, thorough %t", len(taken.drifts), taken.thorough)
	}
	it.drifted(drift{Event: watch.Event{What: watch.Gone}, notBefore: now.Add(-time.Minute)})
	it.putBack(taken)
	due, at := it.due()
	again := it.take(false, now)
	if !due || !at.Equal(now) || !again.thorough || len(again.drifts) != maxDrifts {
		t.Errorf("due %t at %s: %v", due, at, again)
	}
	if last := again.drifts[maxDrifts-1]; last.What != watch.Changed {
		t.Errorf("of one object what is known already stays, got %v", last)
	}
}

// TestDriftIsHealedInTime: what an object has to wait for is its own affair.
func TestDriftIsHealedInTime(t *testing.T) {
	now := time.Unix(0, 0)
	of := func(name string, wait time.Duration) drift {
		object := watch.Object{NamespacedName: types.NamespacedName{Name: name}}
		return drift{Event: watch.Event{Object: object, What: watch.Changed}, notBefore: now.Add(wait)}
	}
	full := slices.Repeat([]drift{of("fought", time.Minute)}, maxDrifts)
	tests := map[string]struct {
		drifts []drift
		due    time.Duration
		healed int // by a background run
		left   int
	}{
		"nothing":                              {},
		"one":                                  {drifts: []drift{of("a", 0)}, healed: 1},
		"a fight":                              {drifts: []drift{of("a", time.Minute)}, due: time.Minute, left: 1},
		"a fight keeps nobody else waiting":    {drifts: []drift{of("a", time.Minute), of("b", 0)}, healed: 1, left: 1},
		"two fights, the earlier one":          {drifts: []drift{of("a", time.Hour), of("b", time.Minute)}, due: time.Minute, left: 2},
		"a fight waits with all of the object": {drifts: []drift{of("a", 0), of("a", time.Minute), of("a", 0)}, due: time.Minute, left: 3},
		"many fights make room for others":     {drifts: append(full, of("b", 0)), healed: 1, left: maxDrifts - 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			it := newItems().get(&lsv1alpha1.DeployItem{})
			for _, d := range tt.drifts {
				it.drifted(d)
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
