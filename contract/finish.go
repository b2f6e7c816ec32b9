// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// ApplyOutcome writes an outcome to di.Status in memory. It sets the phase, lastError and [ConditionWaiting]. Under
// [RevisionJobID], it also adds lastError to the error history and, if the run ends, sets jobIDFinished and
// finishedTime. Before the call, set di.Status.Phase back to the stored phase, because the deployer may have changed
// it.
//
// For a background run, it writes only [ConditionBackground] and lastReconcileTime, which becomes the value of
// started.
//
// Whatever o contains, Apply never writes a final phase without ending the run, and never ends a run without a final
// phase.
func ApplyOutcome(di *lsv1alpha1.DeployItem, d Decision, o Outcome, now, started time.Time) {
	if di == nil {
		return
	}
	if d.Background {
		applyBackground(di, d, o, now, started)
		return
	}
	status := &di.Status
	applyPhase(status, d.Revision, o, isDeleting(di))
	if o.Final {
		getRules(d.Revision).setFinished(status, now)
	}
	recordError(status, d.Revision, o.Err, now)
	if o.Waiting {
		status.Conditions = SetCondition(status.Conditions, ConditionWaiting, lsv1alpha1.ConditionTrue,
			conditionReasonWaiting, waitMessage(o), now)
	} else {
		status.Conditions = RemoveCondition(status.Conditions, ConditionWaiting)
	}
}

func applyPhase(status *lsv1alpha1.DeployItemStatus, r Revision, o Outcome, deleting bool) {
	p := toStoredPhase(r, o.Phase)
	switch {
	case o.Final == IsFinal(p):
	case !o.Final:
		p = ""
	case o.Err != nil || deleting:
		p = FailedPhase(r, deleting)
	default:
		p = phaseSucceeded
	}
	if p != "" {
		status.Phase = p
	}
}

// applyBackground writes the result of a background run to [ConditionBackground]. The condition shows that the run
// succeeded, that it is pending, or that it failed and will not be retried.
func applyBackground(di *lsv1alpha1.DeployItem, d Decision, o Outcome, now, started time.Time) {
	status := &di.Status
	status.LastReconcileTime = toStoredTimePtr(startTime(di, d.Revision, started))
	set := func(s lsv1alpha1.ConditionStatus, reason, message string, codes ...lsv1alpha1.ErrorCode) {
		status.Conditions = SetCondition(status.Conditions, ConditionBackground, s, reason, message, now, codes...)
	}
	switch {
	case o.Waiting:
		set(lsv1alpha1.ConditionTrue, conditionReasonWaiting, waitMessage(o))
	case o.Err == nil:
		set(lsv1alpha1.ConditionFalse, conditionReasonSucceeded, "the last background run succeeded")
	case !o.Final:
		set(lsv1alpha1.ConditionTrue, conditionReasonFailed, o.Err.Message, o.Err.Codes...)
	case o.Err.Reason == lsv1alpha1.ProgressingTimeoutReason:
		set(lsv1alpha1.ConditionFalse, conditionReasonTimedOut, o.Err.Message, o.Err.Codes...)
	default:
		set(lsv1alpha1.ConditionFalse, conditionReasonFailed, o.Err.Message, o.Err.Codes...)
	}
}

// waitMessage returns one line that describes what the deployer waits for.
func waitMessage(o Outcome) string {
	return cmp.Or(OneLine(o.Message, MaxMessage), "the deployer is not done yet")
}

// HasBackgroundSucceeded reports whether [ConditionBackground] is absent or shows that the last background run
// succeeded. In both cases another success changes only lastReconcileTime.
func HasBackgroundSucceeded(di *lsv1alpha1.DeployItem) bool {
	if di == nil {
		return true
	}
	c := GetCondition(di.Status.Conditions, ConditionBackground)
	return c == nil || c.Status == lsv1alpha1.ConditionFalse && c.Reason == conditionReasonSucceeded
}

// IsBackgroundWaiting reports whether [ConditionBackground] shows that the last background run called the deployer, and
// that the deployer was not done.
func IsBackgroundWaiting(di *lsv1alpha1.DeployItem) bool {
	if di == nil {
		return false
	}
	c := GetCondition(di.Status.Conditions, ConditionBackground)
	return c != nil && c.Status == lsv1alpha1.ConditionTrue && c.Reason == conditionReasonWaiting
}
