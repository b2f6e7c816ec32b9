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

func at(minutes int) time.Time     { return epoch.Add(time.Duration(minutes) * time.Minute) }
func mt(minutes int) *metav1.Time  { return ref(at(minutes)) }
func ref(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }
func val(minutes int) metav1.Time  { return metav1.NewTime(at(minutes)) }
func info() contract.StartInfo {
	return contract.StartInfo{Now: epoch, Deployer: deployer, JobID: "fresh"}
}
func options() contract.Options { return contract.Options{Now: epoch} }
func annotated() contract.Options {
	return contract.Options{Now: epoch, Revision: contract.RevisionAnnotation}
}

func jobOptions() contract.Options {
	return contract.Options{Now: epoch, Revision: contract.RevisionJobID}
}

func cond(t lsv1alpha1.ConditionType, s lsv1alpha1.ConditionStatus, minutes int) lsv1alpha1.Condition {
	return lsv1alpha1.Condition{Type: t, Status: s, Reason: "R", Message: "m", LastTransitionTime: val(minutes), LastUpdateTime: val(minutes)}
}

var deployer = lsv1alpha1.DeployerInformation{Identity: "id", Name: "name", Version: "v1"}

type mod func(*lsv1alpha1.DeployItem)

// item returns an item of generation 3 that no deployer has processed yet. The given changes are applied to the item.
func item(mods ...mod) *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Name, di.Namespace, di.UID, di.Generation = "item", "ns", "uid", 3
	for _, m := range mods {
		m(di)
	}
	return di
}

// ran returns an item with the phase p. Its last run was for generation 3 and began five minutes ago. The given changes
// are applied to the item.
func ran(p phase, mods ...mod) *lsv1alpha1.DeployItem {
	return item(append([]mod{phased(p), observed(3), reconciled(-5)}, mods...)...)
}

func phased(p phase) mod { return func(di *lsv1alpha1.DeployItem) { di.Status.Phase = p } }
func observed(g int64) mod {
	return func(di *lsv1alpha1.DeployItem) { di.Status.ObservedGeneration = g }
}
func generation(g int64) mod { return func(di *lsv1alpha1.DeployItem) { di.Generation = g } }
func reconciled(min int) mod {
	return func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = mt(min) }
}

func deleted(minutes int) mod {
	return func(di *lsv1alpha1.DeployItem) { di.DeletionTimestamp = mt(minutes) }
}

func updateOnChange(di *lsv1alpha1.DeployItem) {
	di.Spec.UpdateOnChangeOnly = true
}

func finalizer(di *lsv1alpha1.DeployItem) {
	di.Finalizers = append(di.Finalizers, lsv1alpha1.LandscaperFinalizer)
}

func managed(di *lsv1alpha1.DeployItem) {
	di.Labels = map[string]string{lsv1alpha1.ExecutionManagedByLabel: "exec"}
}

func note(key, value string) mod {
	return func(di *lsv1alpha1.DeployItem) {
		if di.Annotations == nil {
			di.Annotations = map[string]string{}
		}
		di.Annotations[key] = value
	}
}

func op(o lsv1alpha1.Operation) mod { return note(lsv1alpha1.OperationAnnotation, string(o)) }

// job sets the job IDs. The last argument is the time at which Landscaper requested the job, in minutes relative to the
// current time.
func job(id, finished string, generated int) mod {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.JobID, di.Status.JobIDFinished = id, finished
		di.Status.JobIDGenerationTime = mt(generated)
	}
}

func owed(minutes int) mod {
	return func(di *lsv1alpha1.DeployItem) {
		di.Status.Conditions = append(di.Status.Conditions, cond(contract.ConditionBackground, lsv1alpha1.ConditionTrue, minutes))
	}
}

func timeout(d time.Duration) mod {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

// all contains every phase that tests should cover.
var all = []phase{
	"", phInit, phProgressing, phCompleting, phInitDelete, phDeleting,
	phSucceeded, phFailed, phDeleteFailed, phAborted, phUnknown,
}

func IsWorking(p phase) bool {
	return p == phInit || p == phProgressing || p == phCompleting || p == phInitDelete || p == phDeleting
}

func isDone(p phase) bool {
	return p == phSucceeded || p == phFailed || p == phDeleteFailed || p == phAborted
}

func paused(di *lsv1alpha1.DeployItem) { note(contract.PausedAnnotation, "true")(di) }
