// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"slices"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestIsFirstCall(t *testing.T) {
	noFinalizer := func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil }
	for name, tc := range map[string]struct {
		changes []itemOption
		want    []bool
	}{
		"a new item under the annotation revision":         {[]itemOption{withOperation(lsv1alpha1.ReconcileOperation)}, []bool{true, false}},
		"a new item with a job":                            {[]itemOption{withJob("1")}, []bool{true, false}},
		"a new item without the finalizer":                 {[]itemOption{withJob("1"), noFinalizer}, []bool{true, false}},
		"an item whose start was stored without finalizer": {[]itemOption{withRunningJob("1", 0), noFinalizer}, []bool{true, false}},
		"an item whose start was stored":                   {[]itemOption{withRunningJob("1", 0)}, []bool{false, false}},
		"an item that failed":                              {[]itemOption{withFinishedJob("1", phases.Failed), withNextJob}, []bool{false, false}},
	} {
		t.Run(name+" [F37]", func(t *testing.T) {
			var got []bool
			w := newTestEnv(t, newItems(tc.changes...))
			w.fake.SetDefaultAnswer(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
				got = append(got, deployerlib.IsFirstCall(ctx))
				return deployerlib.WaitFor("more", time.Second)
			})
			w.reconcile()
			w.startNewEngine()
			w.reconcile()
			if !slices.Equal(got, tc.want) {
				t.Errorf("want %v, got %v", tc.want, got)
			}
		})
	}
	t.Run("IsFirstCall returns false for a context without a call [F37]", func(t *testing.T) {
		if deployerlib.IsFirstCall(t.Context()) {
			t.Error("IsFirstCall is true outside of a call")
		}
	})
}
