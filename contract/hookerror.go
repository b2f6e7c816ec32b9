// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// SetHookError writes the error of a hook to di.Status in memory. Call it if a hook failed while no run was due. It
// does not end a run, so the phase does not change. Under the annotation revision, the error becomes lastError. Under
// the job-ID revision, lastError belongs to jobs, so the error is written to [ConditionBackground]: the condition stays
// True if a background run is pending, and becomes Unknown otherwise.
func SetHookError(di *lsv1alpha1.DeployItem, d Decision, err error, now time.Time) {
	if di == nil || err == nil {
		return
	}
	e := NewError(err, hookOperation, conditionReasonHookFailed, now)
	getRules(d.Revision).setHookError(&di.Status, e, now)
}

// HasHookError reports whether the item still shows an error that [SetHookError] wrote.
func HasHookError(di *lsv1alpha1.DeployItem, d Decision) bool {
	return di != nil && getRules(d.Revision).hasHookError(&di.Status)
}

// RemoveHookError removes the error that [SetHookError] wrote. Call it when the hooks succeed again while no run is
// due.
func RemoveHookError(di *lsv1alpha1.DeployItem, d Decision) {
	if HasHookError(di, d) {
		getRules(d.Revision).removeHookError(&di.Status)
	}
}

// SetStoppedByHook writes to di.Status in memory that hooks stop a run that is due. The message names the hooks. Only
// [ConditionWaiting] changes, so a run that has not started does not start. Call it only for runs that are not
// background runs.
func SetStoppedByHook(di *lsv1alpha1.DeployItem, message string, now time.Time) {
	if di == nil {
		return
	}
	di.Status.Conditions = SetCondition(di.Status.Conditions, ConditionWaiting, lsv1alpha1.ConditionTrue,
		conditionReasonStopped, OneLine(message, MaxMessage), now)
}

// StoppedByHookMessage returns the message that [SetStoppedByHook] wrote to the item, or "" if no hook stops a run.
func StoppedByHookMessage(di *lsv1alpha1.DeployItem) string {
	if di == nil {
		return ""
	}
	c := GetCondition(di.Status.Conditions, ConditionWaiting)
	if c == nil || c.Status != lsv1alpha1.ConditionTrue || c.Reason != conditionReasonStopped {
		return ""
	}
	return c.Message
}

// RemoveStoppedByHook removes the condition that [SetStoppedByHook] wrote. Call it when no run is due.
func RemoveStoppedByHook(di *lsv1alpha1.DeployItem) {
	if StoppedByHookMessage(di) != "" {
		di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionWaiting)
	}
}

// IsErrorRecorded reports whether the item already shows e. The errors of background runs are shown in
// [ConditionBackground]. Under [RevisionJobID], the errors of hooks that fail while no run is due are shown there too.
// All other errors are shown in lastError.
func IsErrorRecorded(di *lsv1alpha1.DeployItem, d Decision, e *lsv1alpha1.Error) bool {
	switch {
	case di == nil || e == nil:
		return false
	case d.Background:
		return isShownInBackground(&di.Status, e)
	case !d.Due:
		return getRules(d.Revision).isHookErrorRecorded(&di.Status, e)
	default:
		return equalErrors(e, di.Status.LastError)
	}
}

// isShownInBackground reports whether [ConditionBackground] shows the message of e.
func isShownInBackground(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	shown := GetCondition(status.Conditions, ConditionBackground)
	return shown != nil && shown.Message == e.Message
}

// hookOperation is the operation in the error that [SetHookError] writes.
const hookOperation = "ExecuteHooks"
