// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deployerkit/deployerkit/contract"
)

// TestHookFailed checks that HookFailed changes neither the phase nor, under the job-ID revision, lastError.
func TestHookFailed(t *testing.T) {
	t.Parallel()
	background := func(s lsv1alpha1.ConditionStatus, since int) []lsv1alpha1.Condition {
		c := cond(contract.ConditionBackground, s, since)
		c.Reason, c.Message, c.LastUpdateTime = "HookFailed", "boom", val(0)
		return []lsv1alpha1.Condition{c}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want func(*lsv1alpha1.DeployItemStatus)
	}{
		"annotation revision [Lx3]": {ran(phSucceeded), func(s *lsv1alpha1.DeployItemStatus) {
			s.LastError = lastErr("ExecuteHooks", "boom", 0, 0)
			s.LastError.Reason = "HookFailed"
		}},
		"finished job": {ran(phSucceeded, job("a", "a", -9), oldErrors), func(s *lsv1alpha1.DeployItemStatus) {
			s.Conditions = background(lsv1alpha1.ConditionUnknown, 0)
		}},
		"finished job with a pending background run": {ran(phSucceeded, job("a", "a", -9), owed(-2)), func(s *lsv1alpha1.DeployItemStatus) {
			s.Conditions = background(lsv1alpha1.ConditionTrue, -2)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := tc.di.DeepCopy()
			tc.want(&want.Status)
			d := contract.Evaluate(tc.di, options())
			contract.HookFailed(tc.di, d, errBoom, epoch)
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			contract.HookFailed(tc.di, d, nil, epoch)
			contract.HookFailed(nil, d, errBoom, epoch)
			if diff := cmp.Diff(want, tc.di); diff != "" {
				t.Errorf("nothing failed: %s", diff)
			}
		})
	}
}

func TestHookRecovered(t *testing.T) {
	t.Parallel()
	for name, di := range map[string]*lsv1alpha1.DeployItem{
		"annotation revision": ran(phSucceeded),
		"finished job":        ran(phSucceeded, job("a", "a", -9)),
	} {
		t.Run(name+": only the error is removed", func(t *testing.T) {
			t.Parallel()
			want, d := di.DeepCopy(), contract.Evaluate(di, options())
			contract.HookFailed(di, d, errBoom, epoch)
			if !contract.ShowsHookFailure(di, d) {
				t.Fatal("the status does not show the failure")
			}
			contract.HookRecovered(di, d)
			if diff := cmp.Diff(want, di, cmpopts.EquateEmpty()); diff != "" || contract.ShowsHookFailure(di, d) {
				t.Errorf("-want +got\n%s", diff)
			}
			contract.HookRecovered(nil, d)
		})
	}
	t.Run("the error of a run is kept", func(t *testing.T) {
		t.Parallel()
		di := ran(phSucceeded, oldErrors)
		want, d := di.DeepCopy(), contract.Evaluate(di, options())
		contract.HookRecovered(di, d)
		if diff := cmp.Diff(want, di); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

// TestHookRecoveredKeepsPendingRun checks that a pending background run stays pending when the hooks succeed again.
func TestHookRecoveredKeepsPendingRun(t *testing.T) {
	t.Parallel()
	di := ran(phSucceeded, job("a", "a", -9), owed(-2))
	d := contract.Evaluate(di, options())
	contract.HookFailed(di, d, errBoom, epoch)
	contract.HookRecovered(di, d)
	if again := contract.Evaluate(di, options()); !again.Due || !again.Background {
		t.Errorf("Evaluate(...) = %+v, want a due background run", again)
	}
	if contract.ShowsHookFailure(di, d) {
		t.Error("the status still shows the hook failure after HookRecovered")
	}
}
