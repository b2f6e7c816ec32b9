// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

func raw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }

// vandal is a status in which every single field differs from that of any item of these tests.
func vandal() *lsv1alpha1.DeployItemStatus {
	gone := "gone"
	return &lsv1alpha1.DeployItemStatus{
		Phase: phProgressing, ObservedGeneration: 99,
		Conditions: []lsv1alpha1.Condition{cond(contract.ConditionBackground, "False", 9), cond("Theirs", "True", 9), cond(contract.ConditionWaiting, "True", 9)},
		LastError:  lastErr("X", "x", 9, 9), FirstError: lastErr("X", "x", 9, 9), LastErrors: []*lsv1alpha1.Error{nil},
		LastReconcileTime: mt(99), Deployer: lsv1alpha1.DeployerInformation{Name: "x"},
		ProviderStatus: raw(`{"x":1}`), ExportReference: &lsv1alpha1.ObjectReference{Name: "x"},
		JobID: "x", JobIDFinished: "y", JobIDGenerationTime: mt(99), DeployerPhase: &gone,
		TransitionTimes: &lsv1alpha1.TransitionTimes{WaitTime: mt(99)},
	}
}

func TestProtect(t *testing.T) {
	t.Parallel()
	before := ran(phInit, job("b", "a", -6), oldErrors, owed(-2), func(di *lsv1alpha1.DeployItem) {
		di.Status.Deployer = deployer
		di.Status.Conditions = append(di.Status.Conditions, cond(contract.ConditionDeployed, "False", -2))
	})
	for _, r := range []contract.Revision{contract.Annotation, contract.JobID} {
		want := before.Status.DeepCopy()
		v := vandal()
		want.Phase, want.LastError, want.ProviderStatus, want.ExportReference = v.Phase, v.LastError, v.ProviderStatus, v.ExportReference
		want.Conditions = []lsv1alpha1.Condition{before.Status.Conditions[0], cond("Theirs", "True", 9), before.Status.Conditions[1]}
		after := vandal()
		contract.Protect(&before.Status, after, r)
		if diff := cmp.Diff(want, after); diff != "" {
			t.Errorf("%s: -want +got\n%s", r, diff)
		}
		after.FirstError.Message = "changed"
		if before.Status.FirstError.Message == "changed" {
			t.Error("before and after share memory")
		}
	}
	contract.Protect(nil, vandal(), contract.JobID)
	contract.Protect(vandal(), nil, contract.JobID)
}

// TestProtectConditions: each of the library's conditions is put back, removed or left away as it was.
func TestProtectConditions(t *testing.T) {
	t.Parallel()
	own := []lsv1alpha1.ConditionType{
		contract.ConditionBackground, contract.ConditionDeployed, contract.ConditionWaiting, contract.ConditionPaused,
	}
	for _, ours := range own {
		theirs, mine, changed := cond("Theirs", "True", 9), cond(ours, "True", -2), cond(ours, "False", 9)
		for name, tc := range map[string]struct{ before, after, want []lsv1alpha1.Condition }{
			"changed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{changed, theirs}, []lsv1alpha1.Condition{mine, theirs}},
			"removed": {[]lsv1alpha1.Condition{mine}, []lsv1alpha1.Condition{theirs}, []lsv1alpha1.Condition{theirs, mine}},
			"added":   {nil, []lsv1alpha1.Condition{theirs, changed}, []lsv1alpha1.Condition{theirs}},
		} {
			t.Run(string(ours)+" "+name, func(t *testing.T) {
				t.Parallel()
				before, after := &lsv1alpha1.DeployItemStatus{Conditions: tc.before}, &lsv1alpha1.DeployItemStatus{Conditions: tc.after}
				shared := after.DeepCopy().Conditions
				contract.Protect(before, after, contract.JobID)
				if diff := cmp.Diff(tc.want, after.Conditions); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				if diff := cmp.Diff(shared, tc.after); diff != "" {
					t.Errorf("the slice that was handed in changed: %s", diff)
				}
			})
		}
	}
}

// TestInsist: what an outcome decides is made so, whatever an earlier attempt left; the rest stays.
func TestInsist(t *testing.T) {
	told := func() *lsv1alpha1.DeployItemStatus {
		return &lsv1alpha1.DeployItemStatus{
			Phase: phProgressing, LastError: lastErr("Reconcile", "told", 1, 1), ExportReference: &lsv1alpha1.ObjectReference{Name: "told"},
			Conditions: []lsv1alpha1.Condition{cond(contract.ConditionDeployed, "True", 1)},
		}
	}
	for name, background := range map[string]bool{"a job": false, "a background run": true} {
		t.Run(name, func(t *testing.T) {
			want := vandal()
			want.Conditions = []lsv1alpha1.Condition{cond("Theirs", "True", 9), cond(contract.ConditionDeployed, "True", 1)}
			if !background {
				want.Phase, want.LastError = told().Phase, told().LastError
			}
			from, got := told(), vandal()
			got.Phase = "Theirs"
			if background {
				want.Phase = "Theirs"
			}
			contract.Insist(from, got, contract.Decision{Background: background})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(told(), from); diff != "" {
				t.Errorf("what was told changed (-want +got):\n%s", diff)
			}
		})
	}
	contract.Insist(nil, vandal(), contract.Decision{})
	contract.Insist(told(), nil, contract.Decision{})
}
