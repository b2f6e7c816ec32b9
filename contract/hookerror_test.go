// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deployerkit/deployerkit/contract"
)

// TestSetHookError checks that SetHookError changes neither the phase nor, under the job-ID revision, lastError.
func TestSetHookError(t *testing.T) {
	t.Parallel()
	background := func(s lsv1alpha1.ConditionStatus, since int) []lsv1alpha1.Condition {
		c := newCondition(contract.ConditionBackground, s, since)
		c.Reason, c.Message, c.LastUpdateTime = "HookFailed", "boom", metaAfterMinutes(0)
		return []lsv1alpha1.Condition{c}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want func(*lsv1alpha1.DeployItemStatus)
	}{
		"annotation revision [Lx3]": {newStartedItem(phSucceeded), func(s *lsv1alpha1.DeployItemStatus) {
			s.LastError = lastErr("ExecuteHooks", "boom", 0, 0)
			s.LastError.Reason = "HookFailed"
		}},
		"finished job": {newStartedItem(phSucceeded, withJob("a", "a", -9), withOldErrors), func(s *lsv1alpha1.DeployItemStatus) {
			s.Conditions = background(lsv1alpha1.ConditionUnknown, 0)
		}},
		"finished job with a pending background run": {newStartedItem(phSucceeded, withJob("a", "a", -9), withPendingBackground(-2)), func(s *lsv1alpha1.DeployItemStatus) {
			s.Conditions = background(lsv1alpha1.ConditionTrue, -2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.di.DeepCopy()
			tc.want(&want.Status)
			d := contract.Evaluate(tc.di, newOptions())
			contract.SetHookError(tc.di, d, errBoom, epoch)
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			contract.SetHookError(tc.di, d, nil, epoch)
			contract.SetHookError(nil, d, errBoom, epoch)
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("nothing failed: %s", diff)
			}
		})
	}
}

func TestRemoveHookError(t *testing.T) {
	t.Parallel()
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"annotation revision": newStartedItem(phSucceeded),
		"finished job":        newStartedItem(phSucceeded, withJob("a", "a", -9)),
	} {
		t.Run(name+": only the error is removed", func(t *testing.T) {
			t.Parallel()
			want, d := di.DeepCopy(), contract.Evaluate(di, newOptions())
			contract.SetHookError(di, d, errBoom, epoch)
			if !contract.HasHookError(di, d) {
				t.Fatal("the status does not show the failure")
			}
			contract.RemoveHookError(di, d)
			if diff := cmp.Diff(want, di, cmpopts.EquateEmpty()); diff != "" || contract.HasHookError(di, d) {
				t.Errorf("-want +got\n%s", diff)
			}
			contract.RemoveHookError(nil, d)
		})
	}
	t.Run("the error of a run is kept", func(t *testing.T) {
		t.Parallel()
		di := newStartedItem(phSucceeded, withOldErrors)
		want, d := di.DeepCopy(), contract.Evaluate(di, newOptions())
		contract.RemoveHookError(di, d)
		if diff := cmp.Diff(want, di); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestRemoveHookErrorKeepsPendingRun checks that a pending background run stays pending when the hooks succeed again.
func TestRemoveHookErrorKeepsPendingRun(t *testing.T) {
	t.Parallel()
	di := newStartedItem(phSucceeded, withJob("a", "a", -9), withPendingBackground(-2))
	d := contract.Evaluate(di, newOptions())
	contract.SetHookError(di, d, errBoom, epoch)
	contract.RemoveHookError(di, d)
	if again := contract.Evaluate(di, newOptions()); !again.Due || !again.Background {
		t.Errorf("Evaluate(...) = %+v, want a due background run", again)
	}
	if contract.HasHookError(di, d) {
		t.Error("the status still shows the hook failure after HookRecovered")
	}
}
