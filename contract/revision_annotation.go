// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// annotationRules implements the revision [RevisionAnnotation].
type annotationRules struct{}

func (annotationRules) revision() Revision { return RevisionAnnotation }

func (annotationRules) isSelectedBy(*lsv1alpha1.DeployItem) bool { return true }
func (annotationRules) supports(*lsv1alpha1.DeployItem) bool     { return true }

var annotationPhases = revisionPhases{
	initDelete: phaseInit, deleteFailed: phaseFailed,
	writable: []phase{phaseInit, phaseProgressing, phaseDeleting, phaseSucceeded, phaseFailed},
}

func (annotationRules) listPhases() revisionPhases { return annotationPhases }

// requestTime returns the deletionTimestamp, or nil if the item is not deleted. Under this revision, the item does not
// show when any other run was requested.
func (annotationRules) requestTime(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.DeletionTimestamp
}

func (annotationRules) runStart(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.Status.LastReconcileTime
}

// isSameRun reports whether the stored status shows a run in progress and both statuses have the same start time in
// whole seconds.
func (annotationRules) isSameRun(stored, mine *lsv1alpha1.DeployItemStatus, _ Decision) bool {
	return IsInProgress(stored.Phase) && equalSeconds(stored.LastReconcileTime, mine.LastReconcileTime)
}

func (annotationRules) start(*lsv1alpha1.DeployItemStatus, Decision, StartInfo) {}
func (annotationRules) setFinished(*lsv1alpha1.DeployItemStatus, time.Time)     {}
func (annotationRules) recordHistory(*lsv1alpha1.DeployItemStatus)              {}

func (annotationRules) mask(before, after *lsv1alpha1.DeployItemStatus) {
	after.JobID, after.JobIDFinished, after.JobIDGenerationTime = before.JobID, before.JobIDFinished, before.JobIDGenerationTime
	after.TransitionTimes, after.FirstError, after.LastErrors = before.TransitionTimes, before.FirstError, before.LastErrors
}

func (annotationRules) setHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time) {
	recordError(status, RevisionAnnotation, e, now)
}

func (annotationRules) removeHookError(status *lsv1alpha1.DeployItemStatus) { status.LastError = nil }

func (annotationRules) hasHookError(status *lsv1alpha1.DeployItemStatus) bool {
	e := status.LastError
	return e != nil && e.Operation == hookOperation && e.Reason == conditionReasonHookFailed
}

func (annotationRules) isHookErrorRecorded(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	return equalErrors(e, status.LastError)
}

// isInProgress reports whether the run that d requests is already in progress. A deletion that arrives during another
// run is a new run.
func (annotationRules) isInProgress(v view, d Decision) bool {
	deletes := v.phase == phaseDeleting || v.hasStartedSinceDeletion() && !v.changed
	return v.hasAnnotationRun() && (d.Action != ActionDelete || deletes)
}

func (annotationRules) evaluate(v view, d *Decision) {
	switch {
	case v.isWaitingForJob():
		d.Reason = reasonAwaitingJob
	case v.isDeleteFailed():
		d.Reason = reasonDeleteFailed
	default:
		d.Reason, d.New = v.getAnnotationReason()
		d.Due = d.Reason != reasonFinished
		d.Forceable = true
	}
	if !d.Due {
		return
	}
	if v.op == lsv1alpha1.ReconcileOperation {
		d.RemoveAnnotations = append(d.RemoveAnnotations, lsv1alpha1.OperationAnnotation)
	}
	if v.has(lsv1alpha1.ReconcileTimestampAnnotation) {
		d.RemoveAnnotations = append(d.RemoveAnnotations, lsv1alpha1.ReconcileTimestampAnnotation)
	}
}

// getAnnotationReason returns the reason why a run is due or not due, and whether the run begins now.
func (v view) getAnnotationReason() (why Reason, isNew bool) {
	switch {
	case v.op == lsv1alpha1.ReconcileOperation:
		return reasonOperation, true
	case v.hasAnnotationRun():
		return reasonInProgress, v.needsRestart()
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

// hasAnnotationRun reports whether a run is in progress. This requires a phase of a run in progress and, except for an
// abort, a start time. If the start time is missing, no deployer has set the phase, and the run would have no deadline.
func (v view) hasAnnotationRun() bool {
	return IsInProgress(v.phase) && (v.op == AbortOperation || !v.di.Status.LastReconcileTime.IsZero())
}

// needsRestart reports whether a run in progress must begin again because the item changed. An abort never begins
// again. A force-reconcile of a terminating item does not update observedGeneration, so the item looks changed even
// while this force-reconcile is in progress. Such a force-reconcile begins again only if it began before the deletion.
func (v view) needsRestart() bool {
	switch {
	case v.op == AbortOperation:
		return false
	case v.op == lsv1alpha1.ForceReconcileOperation && v.deleting:
		return v.changed && !v.hasStartedSinceDeletion()
	default:
		return v.changed
	}
}

// hasStartedSinceDeletion reports whether the last run began after the item was deleted.
func (v view) hasStartedSinceDeletion() bool {
	return notBefore(v.di.Status.LastReconcileTime, v.di.DeletionTimestamp)
}

// isDeleteFailed reports whether the last Delete failed and nothing requests another run. To check that the failed run
// began after the deletion, isDeleteFailed compares times, because the deletion of an item does not always increase the
// generation.
func (v view) isDeleteFailed() bool {
	asked := v.op == lsv1alpha1.ReconcileOperation || v.op == lsv1alpha1.ForceReconcileOperation
	return v.deleting && !asked && isFailure(v.phase) && !v.changed && v.hasStartedSinceDeletion()
}

// isWaitingForJob reports whether an Execution created the item and has not requested anything yet. Landscaper v0.28 to
// v0.67 sets the job ID shortly after the creation.
func (v view) isWaitingForJob() bool {
	return v.isManaged() && !v.deleting && !v.has(lsv1alpha1.OperationAnnotation) &&
		v.phase == "" && v.di.Status.ObservedGeneration == 0
}
