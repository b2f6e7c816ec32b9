// SPDX-License-Identifier: Apache-2.0

package manifest

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
	it.setThorough(true)
	drifts, thorough := it.takeDrifts(), it.takeThorough()
	if due, _ := it.toHeal(); due || len(drifts) != maxDrifts || !thorough {
		t.Fatalf("took %d drifts, thorough %t", len(drifts), thorough)
	}
	it.drifted(drift{Event: watch.Event{What: watch.Gone}}, now.Add(time.Minute))
	it.putBack(drifts, thorough)
	due, notBefore := it.toHeal()
	if !due || !notBefore.Equal(now.Add(time.Minute)) || !it.takeThorough() || len(it.takeDrifts()) != maxDrifts {
		t.Errorf("due %t, not before %s", due, notBefore)
	}
}
