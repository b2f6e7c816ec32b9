// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

// val returns the time of these tests plus the given number of minutes.
func val(minutes int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(minutes) * time.Minute))
}

func mt(minutes int) *metav1.Time { t := val(minutes); return &t }

func raw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }

func cond(t lsv1alpha1.ConditionType, s lsv1alpha1.ConditionStatus, minutes int) lsv1alpha1.Condition {
	return lsv1alpha1.Condition{Type: t, Status: s, Reason: "R", Message: "m", LastTransitionTime: val(minutes), LastUpdateTime: val(minutes)}
}

func lastErr(operation, message string, since, updated int) *lsv1alpha1.Error {
	return &lsv1alpha1.Error{Operation: operation, Reason: "R", Message: message, LastTransitionTime: val(since), LastUpdateTime: val(updated)}
}

// started returns the status of a job that began and failed once, with two of the library's conditions.
func started() *lsv1alpha1.DeployItemStatus {
	return &lsv1alpha1.DeployItemStatus{
		Phase: "Init", ObservedGeneration: 3, LastReconcileTime: mt(-5), Deployer: lsv1alpha1.DeployerInformation{Name: "name"},
		JobID: "b", JobIDFinished: "a", JobIDGenerationTime: mt(-6),
		LastError: lastErr("A", "a", -3, -2), FirstError: lastErr("A", "a", -3, -2), LastErrors: []*lsv1alpha1.Error{lastErr("A", "a", -3, -2)},
		Conditions: []lsv1alpha1.Condition{cond(contract.ConditionBackground, "True", -2), cond(contract.ConditionDeployed, "False", -2)},
	}
}

// vandal returns a status in which every field has a value that no other status in these tests has in that field.
func vandal() *lsv1alpha1.DeployItemStatus {
	gone := "gone"
	return &lsv1alpha1.DeployItemStatus{
		Phase: "Progressing", ObservedGeneration: 99,
		Conditions: []lsv1alpha1.Condition{cond(contract.ConditionBackground, "False", 9), cond("Theirs", "True", 9), cond(contract.ConditionWaiting, "True", 9)},
		LastError:  lastErr("X", "x", 9, 9), FirstError: lastErr("X", "x", 9, 9), LastErrors: []*lsv1alpha1.Error{nil},
		LastReconcileTime: mt(99), Deployer: lsv1alpha1.DeployerInformation{Name: "x"},
		ProviderStatus: raw(`{"x":1}`), ExportReference: &lsv1alpha1.ObjectReference{Name: "x"},
		JobID: "x", JobIDFinished: "y", JobIDGenerationTime: mt(99), DeployerPhase: &gone,
		TransitionTimes: &lsv1alpha1.TransitionTimes{WaitTime: mt(99)},
	}
}
