// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// TestResumeOfAnItemThatNeverRan: such items are resumed too when the deployer sees them before their first job.
func TestResumeOfAnItemThatNeverRan(t *testing.T) {
	d := &deployer{items: newItems(), scape: &landscape{uid: "known"}}
	if err := d.Resume(t.Context(), &lsv1alpha1.DeployItem{}, &lsv1alpha1.ResolvedTarget{}); err != nil {
		t.Errorf("want nothing to do, got %v", err)
	}
}
