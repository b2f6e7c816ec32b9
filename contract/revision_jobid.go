// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobIDRules implements the revision [RevisionJobID].
type jobIDRules struct{}

func (jobIDRules) revision() Revision { return RevisionJobID }

// isSelectedBy reports whether the item has a job ID, or has the deployer-type annotation and no run in progress.
func (j jobIDRules) isSelectedBy(di *lsv1alpha1.DeployItem) bool {
	if di == nil || !j.supports(di) {
		return false
	}
	_, marked := di.Annotations[lsv1alpha1.DeployerTypeAnnotation]
	return marked || di.Status.JobID != ""
}

// supports returns false if a run is in progress and the item has no job ID. Under this revision, such a run would
// count as finished, so nothing would ever write a final phase.
func (jobIDRules) supports(di *lsv1alpha1.DeployItem) bool {
	return di == nil || di.Status.JobID != "" || !IsInProgress(di.Status.Phase)
}

var jobIDPhases = revisionPhases{
	initDelete: phaseInitDelete, deleteFailed: phaseDeleteFailed,
	writable: []phase{
		phaseInit, phaseProgressing, phaseSucceeded, phaseFailed,
		phaseInitDelete, phaseDeleting, phaseDeleteFailed,
	},
}

func (jobIDRules) listPhases() revisionPhases { return jobIDPhases }

func (jobIDRules) requestTime(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.Status.JobIDGenerationTime
}

// runStart returns the time at which the current job began.
func (jobIDRules) runStart(di *lsv1alpha1.DeployItem) *metav1.Time {
	if t := di.Status.TransitionTimes; t != nil && !t.InitTime.IsZero() {
		return t.InitTime
	}
	return di.Status.LastReconcileTime
}

// isInProgress reports whether the run that d requests is already in progress. A deletion that arrives during another
// run is a new run.
func (jobIDRules) isInProgress(v view, d Decision) bool {
	switch {
	case d.Background:
		return needsBackgroundRetry(v.di)
	case d.Action == ActionDelete && v.phase != phaseInitDelete && v.phase != phaseDeleting:
		return false
	default:
		return !d.New
	}
}

// isSameRun reports whether both items have the same unfinished job. For a background run, both items must have the
// same finished job instead. If the job of a test-reconcile ([Decision.NewJob]) is not stored yet, the stored item must
// have no unfinished job, and both items must have the same jobIDFinished.
func (jobIDRules) isSameRun(stored, mine *lsv1alpha1.DeployItemStatus, d Decision) bool {
	switch {
	case d.Background:
		return stored.JobID == mine.JobID && stored.JobIDFinished == mine.JobIDFinished
	case d.NewJob && stored.JobID != mine.JobID:
		return stored.JobID == stored.JobIDFinished && stored.JobIDFinished == mine.JobIDFinished
	default:
		return stored.JobID == mine.JobID && stored.JobIDFinished != stored.JobID
	}
}

func (jobIDRules) start(status *lsv1alpha1.DeployItemStatus, d Decision, s StartInfo) {
	status.FirstError, status.LastErrors = nil, nil
	var trigger *metav1.Time
	if d.NewJob {
		status.JobID = s.JobID
		status.JobIDGenerationTime = toStoredTimePtr(s.Now)
		trigger = toStoredTimePtr(s.Now)
	} else if status.TransitionTimes != nil {
		trigger = status.TransitionTimes.TriggerTime
	}
	status.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: trigger, InitTime: toStoredTimePtr(s.Now)}
}

// setFinished marks the job as finished.
func (jobIDRules) setFinished(status *lsv1alpha1.DeployItemStatus, now time.Time) {
	status.JobIDFinished = status.JobID
	times := lsv1alpha1.TransitionTimes{}
	if status.TransitionTimes != nil {
		times = *status.TransitionTimes
	}
	times.FinishedTime = toStoredTimePtr(now)
	status.TransitionTimes = &times
}

// recordHistory adds lastError to the error history of the job.
func (jobIDRules) recordHistory(status *lsv1alpha1.DeployItemStatus) {
	e := status.LastError
	if status.FirstError == nil {
		status.FirstError = e.DeepCopy()
	}
	isAbsent := func(h *lsv1alpha1.Error) bool { return h == nil }
	history := slices.DeleteFunc(slices.Clone(status.LastErrors), isAbsent)
	if n := len(history); n == 0 || !equalErrors(history[n-1], e) {
		history = append(history, e.DeepCopy())
	}
	status.LastErrors = history[max(0, len(history)-MaxLastErrors):]
}

// mask enforces the rules of a job: only Landscaper changes the job ID of an unfinished job, and the fields that finish
// a job change together.
func (jobIDRules) mask(b, after *lsv1alpha1.DeployItemStatus) {
	if after.JobID != b.JobID && (after.JobID == "" || (b.JobID != "" && b.JobID != b.JobIDFinished)) {
		after.JobID = b.JobID
	}
	if after.JobID == b.JobID {
		after.JobIDGenerationTime = b.JobIDGenerationTime
	}
	finishes := after.JobIDFinished != b.JobIDFinished
	if finishes && (after.JobIDFinished != after.JobID || !IsFinal(after.Phase)) {
		after.JobIDFinished = b.JobIDFinished
		finishes = false
	}
	// A write may set a final phase only if it also finishes the job. The phase of a finished job does not change.
	finished := after.JobID == after.JobIDFinished
	if !finishes && (finished || IsFinal(after.Phase)) {
		after.Phase = b.Phase
	}
}

func (jobIDRules) evaluate(v view, d *Decision) {
	if v.op == lsv1alpha1.TestReconcileOperation {
		d.RemoveAnnotations = append(d.RemoveAnnotations, lsv1alpha1.OperationAnnotation)
	}
	if v.hasPendingJob() {
		evaluatePending(v, d)
	} else {
		evaluateFinished(v, d)
	}
}

// hasPendingJob reports whether Landscaper waits for the end of a job. An empty job ID does not request a job.
func (v view) hasPendingJob() bool {
	return v.di.Status.JobID != "" && v.di.Status.JobID != v.di.Status.JobIDFinished
}

// hasStartedJob reports whether the pending job has started: a run is in progress, and it did not begin before the job
// was created. A run without a start time counts as not started.
func (v view) hasStartedJob() bool {
	return IsInProgress(v.phase) && notBefore(v.di.Status.LastReconcileTime, v.di.Status.JobIDGenerationTime) &&
		!jobIDRules{}.runStart(v.di).IsZero()
}

func evaluatePending(v view, d *Decision) {
	d.Due = true
	if v.hasStartedJob() {
		d.Reason = reasonInProgress
		return
	}
	d.New, d.Reason = true, reasonNewJob
	unchanged := v.di.Spec.UpdateOnChangeOnly && !v.changed && v.phase == phaseSucceeded
	if unchanged && d.Action == ActionReconcile {
		d.Unchanged, d.Reason = true, reasonUnchanged
	}
}

func evaluateFinished(v view, d *Decision) {
	if v.op == lsv1alpha1.TestReconcileOperation {
		d.Due, d.New, d.NewJob, d.Reason = true, true, true, reasonOperation
		return
	}
	refusal := v.checkBackgroundRun()
	if v.op == lsv1alpha1.ForceReconcileOperation && refusal == reasonGenerationMoved && !v.isManaged() {
		refusal = ""
	}
	if refusal != "" {
		d.Reason = refusal
		return
	}
	d.Background, d.Forceable = true, true
	switch {
	case v.op == lsv1alpha1.ForceReconcileOperation:
		d.Due, d.Reason = true, reasonBackgroundForced
	case needsBackgroundRetry(v.di):
		d.Due, d.Reason = true, reasonBackgroundOwed
	default:
		d.Reason = reasonFinished
	}
}

// checkBackgroundRun returns why a background run must not start on an item without a pending job, or "" if it may
// start. Landscaper deletes and updates items in the order of their dependencies, so a deletion or a change must not be
// processed before Landscaper requests it.
func (v view) checkBackgroundRun() Reason {
	switch {
	case v.di.Status.JobIDFinished == "":
		return reasonNeverRun
	case v.deleting:
		return reasonDeletionPending
	case !IsFinal(v.phase):
		return reasonNotFinal
	case v.changed:
		return reasonGenerationMoved
	default:
		return ""
	}
}

// needsBackgroundRetry reports whether a background run has to be retried.
func needsBackgroundRetry(di *lsv1alpha1.DeployItem) bool {
	c := GetCondition(di.Status.Conditions, ConditionBackground)
	return c != nil && c.Status == lsv1alpha1.ConditionTrue
}

// setHookError sets [ConditionBackground], because lastError belongs to jobs. A pending background run stays pending.
func (jobIDRules) setHookError(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error, now time.Time) {
	shown := lsv1alpha1.ConditionUnknown
	if owed := GetCondition(status.Conditions, ConditionBackground); owed != nil && owed.Status == lsv1alpha1.ConditionTrue {
		shown = lsv1alpha1.ConditionTrue
	}
	status.Conditions = SetCondition(status.Conditions, ConditionBackground, shown, conditionReasonHookFailed, e.Message, now, e.Codes...)
}

func (jobIDRules) removeHookError(status *lsv1alpha1.DeployItemStatus) {
	status.Conditions = RemoveCondition(status.Conditions, ConditionBackground)
}

func (jobIDRules) hasHookError(status *lsv1alpha1.DeployItemStatus) bool {
	c := GetCondition(status.Conditions, ConditionBackground)
	return c != nil && c.Status == lsv1alpha1.ConditionUnknown && c.Reason == conditionReasonHookFailed
}

func (jobIDRules) isHookErrorRecorded(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	return isShownInBackground(status, e)
}
