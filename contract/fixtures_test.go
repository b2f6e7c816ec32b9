// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

type phase = lsv1alpha1.DeployItemPhase

const (
	phInit         phase = "Init"
	phProgressing  phase = "Progressing"
	phCompleting   phase = "Completing"
	phSucceeded    phase = "Succeeded"
	phFailed       phase = "Failed"
	phInitDelete   phase = "InitDelete"
	phDeleting     phase = "Deleting"
	phDeleteFailed phase = "DeleteFailed"
	phAborted      phase = "Aborted"
	phUnknown      phase = "Lost"
)

// epoch is the current time in every test. at(-5) is five minutes before epoch, and at(3) is three minutes after epoch.
var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func afterMinutes(minutes int) time.Time       { return epoch.Add(time.Duration(minutes) * time.Minute) }
func ptrAfterMinutes(minutes int) *metav1.Time { return ptrTo(afterMinutes(minutes)) }
func ptrTo(t time.Time) *metav1.Time           { m := metav1.NewTime(t); return &m }
func metaAfterMinutes(minutes int) metav1.Time { return metav1.NewTime(afterMinutes(minutes)) }
func newStartInfo() contract.StartInfo {
	return contract.StartInfo{Now: epoch, Deployer: deployer, JobID: "fresh"}
}
func newOptions() contract.Options { return contract.Options{Now: epoch} }
func newAnnotationOptions() contract.Options {
	return contract.Options{Now: epoch, Revision: contract.RevisionAnnotation}
}

func newJobOptions() contract.Options {
	return contract.Options{Now: epoch, Revision: contract.RevisionJobID}
}

func newCondition(t lsv1alpha1.ConditionType, s lsv1alpha1.ConditionStatus, minutes int) lsv1alpha1.Condition {
	return lsv1alpha1.Condition{Type: t, Status: s, Reason: "R", Message: "m", LastTransitionTime: metaAfterMinutes(minutes), LastUpdateTime: metaAfterMinutes(minutes)}
}

var deployer = lsv1alpha1.DeployerInformation{Identity: "id", Name: "name", Version: "v1"}

type itemOption func(*lsv1alpha1.DeployItem)

// newItem returns an item of generation 3 that no deployer has processed yet. The given changes are applied to the
// item.
func newItem(mods ...itemOption) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Name, di.Namespace, di.UID, di.Generation = "item", "ns", "uid", 3
	for _, m := range mods {
		m(di)
	}
	return di
}

// newStartedItem returns an item with the phase p. Its last run was for generation 3 and began five minutes ago. The
// given changes are applied to the item.
func newStartedItem(p phase, mods ...itemOption) *lsv1alpha1.DeployItem {
	return newItem(append([]itemOption{withPhase(p), withObservedGeneration(3), withLastReconcileTime(-5)}, mods...)...)
}

func withPhase(p phase) itemOption { return func(di *lsv1alpha1.DeployItem) { di.Status.Phase = p } }

func withObservedGeneration(g int64) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = g }
}

func withGeneration(g int64) itemOption { return func(di *lsv1alpha1.DeployItem) { di.Generation = g } }

func withLastReconcileTime(min int) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = ptrAfterMinutes(min) }
}

func withDeletionTime(minutes int) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = ptrAfterMinutes(minutes) }
}

func withUpdateOnChangeOnly(di *lsv1alpha1.DeployItem) {
	di.Spec.UpdateOnChangeOnly = true
}

func withFinalizer(di *lsv1alpha1.DeployItem) {
	di.Finalizers = append(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

func withManagedLabel(di *lsv1alpha1.DeployItem) {
	di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "exec"}
}

func withAnnotation(key, value string) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		if di.Annotations == nil {
			di.Annotations = map[string]string{}
		}
		di.Annotations[key] = value
	}
}

func withOperation(o lsv1alpha1.Operation) itemOption {
	return withAnnotation(lsv1alpha1.OperationAnnotation, string(o))
}

// withJob sets the job IDs. The last argument is the time at which Landscaper requested the job, in minutes relative to
// the current time.
func withJob(id, finished string, generated int) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.JobID, di.Status.JobIDFinished = id, finished
		di.Status.JobIDGenerationTime = ptrAfterMinutes(generated)
	}
}

func withPendingBackground(minutes int) itemOption {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, newCondition(contract.ConditionBackground, lsv1alpha1.ConditionTrue, minutes))
	}
}

func withTimeout(d time.Duration) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

// allPhases contains every phase that tests should cover.
var allPhases = []phase{
	"", phInit, phProgressing, phCompleting, phInitDelete, phDeleting,
	phSucceeded, phFailed, phDeleteFailed, phAborted, phUnknown,
}

func IsInProgress(p phase) bool {
	return p == phInit || p == phProgressing || p == phCompleting || p == phInitDelete || p == phDeleting
}

func isDone(p phase) bool {
	return p == phSucceeded || p == phFailed || p == phDeleteFailed || p == phAborted
}

func withPause(di *lsv1alpha1.DeployItem) { withAnnotation(contract.PausedAnnotation, "true")(di) }
