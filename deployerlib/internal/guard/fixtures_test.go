// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

// newTime returns the time of these tests plus the given number of minutes.
func newTime(minutes int) metav1.Time {
	return metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(minutes) * time.Minute))
}

func newTimePointer(minutes int) *metav1.Time { t := newTime(minutes); return &t }

func toRaw(s string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(s)} }

func newCondition(t lsv1alpha1.ConditionType, s lsv1alpha1.ConditionStatus, minutes int) lsv1alpha1.Condition {
	return lsv1alpha1.Condition{Type: t, Status: s, Reason: "R", Message: "m", LastTransitionTime: newTime(minutes), LastUpdateTime: newTime(minutes)}
}

func newError(operation, message string, since, updated int) *lsv1alpha1.Error {
	return &lsv1alpha1.Error{Operation: operation, Reason: "R", Message: message, LastTransitionTime: newTime(since), LastUpdateTime: newTime(updated)}
}

// newStartedStatus returns the status of a job that began and failed once, with two of the library's conditions.
func newStartedStatus() *lsv1alpha1.DeployItemStatus {
	return &lsv1alpha1.DeployItemStatus{
		Phase: "Init", ObservedGeneration: 3, LastReconcileTime: newTimePointer(-5), Deployer: lsv1alpha1.DeployerInformation{Name: "name"},
		JobID: "b", JobIDFinished: "a", JobIDGenerationTime: newTimePointer(-6),
		LastError: newError("A", "a", -3, -2), FirstError: newError("A", "a", -3, -2), LastErrors: []*lsv1alpha1.Error{newError("A", "a", -3, -2)},
		Conditions: []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, "True", -2), newCondition(contract.ConditionDeployed, "False", -2)},
	}
}

// newChangedStatus returns a status in which every field has a value that no other status in these tests has in that
// field.
func newChangedStatus() *lsv1alpha1.DeployItemStatus {
	gone := "gone"
	return &lsv1alpha1.DeployItemStatus{
		Phase: "Progressing", ObservedGeneration: 99,
		Conditions: []lsv1alpha1.Condition{newCondition(contract.ConditionBackground, "False", 9), newCondition("Theirs", "True", 9), newCondition(contract.ConditionWaiting, "True", 9)},
		LastError:  newError("X", "x", 9, 9), FirstError: newError("X", "x", 9, 9), LastErrors: []*lsv1alpha1.Error{nil},
		LastReconcileTime: newTimePointer(99), Deployer: lsv1alpha1.DeployerInformation{Name: "x"},
		ProviderStatus: toRaw(`{"x":1}`), ExportReference: &lsv1alpha1.ObjectReference{Name: "x"},
		JobID: "x", JobIDFinished: "y", JobIDGenerationTime: newTimePointer(99), DeployerPhase: &gone,
		TransitionTimes: &lsv1alpha1.TransitionTimes{WaitTime: newTimePointer(99)},
	}
}
