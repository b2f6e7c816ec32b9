// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
)

// TestResumeOfAnItemThatNeverRan covers items that the deployer sees before their first job. Resume is called for these
// items, too.
func TestResumeOfAnItemThatNeverRan(t *testing.T) {
	k := New(Options{})
	k.scape = &landscape{uid: "known"}
	r, err := k.Begin(t.Context(), &lsv1alpha1.DeployItem{}, apply.Inventory{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Resume(t.Context(), &lsv1alpha1.ResolvedTarget{}); err != nil {
		t.Errorf("want nothing to do, got %v", err)
	}
}
