// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
)

func TestProtect(t *testing.T) {
	t.Parallel()
	before, after, want, v := started(), vandal(), started(), vandal()
	want.Phase, want.LastError, want.ProviderStatus, want.ExportReference = v.Phase, v.LastError, v.ProviderStatus, v.ExportReference
	want.Conditions = []lsv1alpha1.Condition{before.Conditions[0], cond("Theirs", "True", 9), before.Conditions[1]}
	Protect(before, after)
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	after.FirstError.Message = "changed"
	if before.FirstError.Message == "changed" {
		t.Error("before and after share memory")
	}
	Protect(nil, vandal())
	Protect(vandal(), nil)
}

// TestProtectConditions checks that each of the library's conditions is restored.
func TestProtectConditions(t *testing.T) {
	t.Parallel()
	for _, ours := range contract.OwnConditions() {
		theirs, mine, changed := cond("Theirs", "True", 9), cond(ours, "True", -2), cond(ours, "False", 9)
		for name, tc := range map[string]struct{ before, after, want []lsv1alpha1.Condition }{
			"changed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{changed, theirs}, []lsv1alpha1.Condition{mine, theirs}},
			"removed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{theirs}, []lsv1alpha1.Condition{theirs, mine}},
			"added":   {nil, []lsv1alpha1.Condition{theirs, changed}, []lsv1alpha1.Condition{theirs}},
		} {
			t.Run(string(ours)+" "+name+" [F53]", func(t *testing.T) {
				t.Parallel()
				before, after := &lsv1alpha1.DeployItemStatus{Conditions: tc.before}, &lsv1alpha1.DeployItemStatus{Conditions: tc.after}
				shared := after.DeepCopy().Conditions
				Protect(before, after)
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

// TestOverwriteOutcome checks that OverwriteOutcome changes only the fields that the library sets, and that it replaces
// the values of an earlier attempt in these fields.
func TestOverwriteOutcome(t *testing.T) {
	outcome := func() *lsv1alpha1.DeployItemStatus {
		return &lsv1alpha1.DeployItemStatus{
			Phase: "Progressing", LastError: lastErr("Reconcile", "outcome", 1, 1), ExportReference: &lsv1alpha1.ObjectReference{Name: "outcome"},
			Conditions: []lsv1alpha1.Condition{cond(contract.ConditionDeployed, "True", 1)},
		}
	}
	for name, background := range map[string]bool{"a job": false, "a background run": true} {
		t.Run(name, func(t *testing.T) {
			want := vandal()
			want.Conditions = []lsv1alpha1.Condition{cond("Theirs", "True", 9), cond(contract.ConditionDeployed, "True", 1)}
			if !background {
				want.Phase, want.LastError = outcome().Phase, outcome().LastError
			}
			from, got := outcome(), vandal()
			got.Phase = "Theirs"
			if background {
				want.Phase = "Theirs"
			}
			OverwriteOutcome(from, got, contract.Decision{Background: background})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(outcome(), from); diff != "" {
				t.Errorf("the argument outcome was changed (-want +got):\n%s", diff)
			}
		})
	}
	OverwriteOutcome(nil, vandal(), contract.Decision{})
	OverwriteOutcome(outcome(), nil, contract.Decision{})
}
