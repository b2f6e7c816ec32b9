// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func TestResetProtected(t *testing.T) {
	t.Parallel()
	before, after, want, v := newStartedStatus(), newChangedStatus(), newStartedStatus(), newChangedStatus()
	want.Phase, want.LastError, want.ProviderStatus, want.ExportReference = v.Phase, v.LastError, v.ProviderStatus, v.ExportReference
	want.Conditions = []lsv1alpha1.Condition{before.Conditions[0], newCondition("Theirs", "True", 9), before.Conditions[1]}
	ResetProtected(before, after)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	after.FirstError.Message = "changed"
	if before.FirstError.Message == "changed" {
		t.Error("before and after share memory")
	}
	ResetProtected(nil, newChangedStatus())
	ResetProtected(newChangedStatus(), nil)
}

// TestResetProtectedConditions checks that each of the library's conditions is restored.
func TestResetProtectedConditions(t *testing.T) {
	t.Parallel()
	for _, ours := range contract.AllConditionTypes() {
		theirs, mine, changed := newCondition("Theirs", "True", 9), newCondition(ours, "True", -2), newCondition(ours, "False", 9)
		for name, tc := range map[string]struct{ before, after, want []lsv1alpha1.Condition }{
			"changed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{changed, theirs}, []lsv1alpha1.Condition{mine, theirs}},
			"removed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{theirs}, []lsv1alpha1.Condition{theirs, mine}},
			"added":   {nil, []lsv1alpha1.Condition{theirs, changed}, []lsv1alpha1.Condition{theirs}},
		} {
			t.Run(string(ours)+" "+name+" [F53]", func(t *testing.T) {
				t.Parallel()
				before, after := &lsv1alpha1.DeployItemStatus{Conditions: tc.before}, &lsv1alpha1.DeployItemStatus{Conditions: tc.after}
				shared := after.DeepCopy().Conditions
				ResetProtected(before, after)
				if diff := cmp.Diff(tc.want, after.Conditions); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				if diff := cmp.Diff(shared, tc.after); diff != "" {
					t.Errorf("the slice in the argument changed: %s", diff)
				}
			})
		}
	}
}

// TestCopyOutcome checks that CopyOutcome changes only the fields that the library sets, and that it replaces
// the values of an earlier attempt in these fields.
func TestCopyOutcome(t *testing.T) {
	outcome := func() *lsv1alpha1.DeployItemStatus {
		return &lsv1alpha1.DeployItemStatus{
			Phase: "Progressing", LastError: newError("Reconcile", "outcome", 1, 1), ExportReference: &lsv1alpha1.ObjectReference{Name: "outcome"},
			Conditions: []lsv1alpha1.Condition{newCondition(contract.ConditionDeployed, "True", 1)},
		}
	}
	for name, background := range map[string]bool{"a job": false, "a background run": true} {
		t.Run(name, func(t *testing.T) {
			want := newChangedStatus()
			want.Conditions = []lsv1alpha1.Condition{newCondition("Theirs", "True", 9), newCondition(contract.ConditionDeployed, "True", 1)}
			if !background {
				want.Phase, want.LastError = outcome().Phase, outcome().LastError
			}
			from, got := outcome(), newChangedStatus()
			got.Phase = "Theirs"
			if background {
				want.Phase = "Theirs"
			}
			CopyOutcome(from, got, contract.Decision{Background: background})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(outcome(), from); diff != "" {
				t.Errorf("the argument outcome was changed (-want +got):\n%s", diff)
			}
		})
	}
	CopyOutcome(nil, newChangedStatus(), contract.Decision{})
	CopyOutcome(outcome(), nil, contract.Decision{})
}
