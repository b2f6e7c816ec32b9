// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// TestDriftSurvivesAFailedRun: a watch tells of each drift once, so a run that could not heal it must not forget it.
func TestDriftSurvivesAFailedRun(t *testing.T) {
	now := time.Unix(0, 0)
	it := newItems().get(&lsv1alpha1.DeployItem{})
	for range maxDrifts + 2 {
		it.drifted(drift{Event: watch.Event{What: watch.Changed}}, now)
	}
	it.setThorough()
	taken := it.take(false, now)
	if due, _ := it.due(); due || len(taken.drifts) != maxDrifts || !taken.thorough {
		t.Fatalf("took %d drifts, thorough %t", len(taken.drifts), taken.thorough)
	}
	it.drifted(drift{Event: watch.Event{What: watch.Gone}}, now.Add(time.Minute))
	it.putBack(taken)
	due, notBefore := it.due()
	again := it.take(false, now)
	if !due || !notBefore.Equal(now.Add(time.Minute)) || !again.thorough || len(again.drifts) != maxDrifts {
		t.Errorf("due %t, not before %s", due, notBefore)
	}
}
