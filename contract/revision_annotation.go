// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotation implements the revision [RevisionAnnotation].
type annotation struct{}

func (annotation) revision() Revision { return RevisionAnnotation }

func (annotation) claims(*lsv1alpha1.DeployItem) bool  { return true }
func (annotation) accepts(*lsv1alpha1.DeployItem) bool { return true }

var annotationPhases = phaseNames{
	initDelete: phaseInit, deleteFailed: phaseFailed,
	writable: []phase{phaseInit, phaseProgressing, phaseDeleting, phaseSucceeded, phaseFailed},
}

func (annotation) phases() phaseNames { return annotationPhases }

// requested returns the deletionTimestamp, or nil if the item is not deleted. Under this revision, the item does not
// show when any other run was requested.
func (annotation) requested(di *lsv1alpha1.DeployItem) *metav1.Time { return di.DeletionTimestamp }

func (annotation) runStart(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.Status.LastReconcileTime
}

// sameRun reports whether the stored status shows a run in progress and both statuses have the same start time in whole
// seconds.
func (annotation) sameRun(stored, mine *lsv1alpha1.DeployItemStatus, _ Decision) bool {
	return IsWorking(stored.Phase) && sameSecond(stored.LastReconcileTime, mine.LastReconcileTime)
}

func (annotation) start(*lsv1alpha1.DeployItemStatus, Decision, StartInfo) {}
func (annotation) finish(*lsv1alpha1.DeployItemStatus, time.Time)          {}
func (annotation) recordHistory(*lsv1alpha1.DeployItemStatus)              {}

func (annotation) mask(before, after *lsv1alpha1.DeployItemStatus) {
	after.JobID, after.JobIDFinished, after.JobIDGenerationTime = before.JobID, before.JobIDFinished, before.JobIDGenerationTime
	after.TransitionTimes, after.FirstError, after.LastErrors = before.TransitionTimes, before.FirstError, before.LastErrors
}

func (annotation) hookFailed(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time) {
	recordError(status, RevisionAnnotation, e, now)
}

func (annotation) hookRecovered(status *lsv1alpha1.DeployItemStatus) { status.LastError = nil }

func (annotation) showsHookFailure(status *lsv1alpha1.DeployItemStatus) bool {
	e := status.LastError
	return e != nil && e.Operation == hookOperation && e.Reason == conditionReasonHookFailed
}

func (annotation) showsHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	return sameError(e, status.LastError)
}

// continues reports whether the run that d requests is already in progress. A deletion that arrives during another run
// is a new run.
func (annotation) continues(v view, d Decision) bool {
	deletes := v.phase == phaseDeleting || v.startedSinceDeletion() && !v.changed
	return v.annotationStarted() && (d.Action != ActionDelete || deletes)
}

func (annotation) evaluate(v view, d *Decision) {
	switch {
	case v.awaitsJob():
		d.Reason = reasonAwaitingJob
	case v.deleteRests():
		d.Reason = reasonDeleteFailed
	default:
		d.Reason, d.New = v.annotationRun()
		d.Due = d.Reason != reasonFinished
		d.Forceable = true
	}
	if !d.Due {
		return
	}
	if v.op == lsv1alpha1.ReconcileOperation {
		d.Remove = append(d.Remove, lsv1alpha1.OperationAnnotation)
	}
	if v.has(lsv1alpha1.ReconcileTimestampAnnotation) {
		d.Remove = append(d.Remove, lsv1alpha1.ReconcileTimestampAnnotation)
	}
}

// annotationRun returns the reason why a run is due or not due, and whether the run begins now.
func (v view) annotationRun() (why Reason, isNew bool) {
	switch {
	case v.op == lsv1alpha1.ReconcileOperation:
		return reasonOperation, true
	case v.annotationStarted():
		return reasonInProgress, v.overtaken()
	case !IsFinal(v.phase):
		return reasonNotStarted, true
	case v.op == lsv1alpha1.ForceReconcileOperation:
		return reasonOperation, true
	case v.changed:
		return reasonGeneration, true
	case v.deleting:
		return reasonDeletion, true
	default:
		return reasonFinished, false
	}
}

// annotationStarted reports whether a run is in progress. This requires a phase of a run in progress and, except for an
// abort, a start time. If the start time is missing, no deployer has set the phase, and the run would have no deadline.
func (v view) annotationStarted() bool {
	return IsWorking(v.phase) && (v.op == AbortOperation || !v.di.Status.LastReconcileTime.IsZero())
}

// overtaken reports whether a run in progress must begin again because the item changed. An abort never begins again. A
// force-reconcile of a terminating item does not update observedGeneration, so the item looks changed even while this
// force-reconcile is in progress. Such a force-reconcile begins again only if it began before the deletion.
func (v view) overtaken() bool {
	switch {
	case v.op == AbortOperation:
		return false
	case v.op == lsv1alpha1.ForceReconcileOperation && v.deleting:
		return v.changed && !v.startedSinceDeletion()
	default:
		return v.changed
	}
}

// startedSinceDeletion reports whether the last run began after the item was deleted.
func (v view) startedSinceDeletion() bool {
	return notBefore(v.di.Status.LastReconcileTime, v.di.DeletionTimestamp)
}

// deleteRests reports whether the last Delete failed and nothing requests another run. To check that the failed run
// began after the deletion, deleteRests compares times, because the deletion of an item does not always increase the
// generation.
func (v view) deleteRests() bool {
	asked := v.op == lsv1alpha1.ReconcileOperation || v.op == lsv1alpha1.ForceReconcileOperation
	return v.deleting && !asked && isFailure(v.phase) && !v.changed && v.startedSinceDeletion()
}

// awaitsJob reports whether an Execution created the item and has not requested anything yet. Landscaper v0.28 to v0.67
// sets the job ID shortly after the creation.
func (v view) awaitsJob() bool {
	return v.managed() && !v.deleting && !v.has(lsv1alpha1.OperationAnnotation) &&
		v.phase == "" && v.di.Status.ObservedGeneration == 0
}
