// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// HookFailed writes the error of a hook on an item that has nothing to do, in memory. No run ends by it, so the phase
// stays. Under the job-ID revision lastError belongs to jobs: the [ConditionBackground] condition becomes Unknown
// instead (a run that is owed stays owed: True with the new message). Under the annotation revision it is lastError.
func HookFailed(di *lsv1alpha1.DeployItem, d Decision, err error, now time.Time) {
	if di == nil || err == nil {
		return
	}
	e := NewError(err, hookOperation, ReasonHookFailed, now)
	if d.Revision == Annotation {
		RecordError(&di.Status, d.Revision, e, now)
		return
	}
	status := lsv1alpha1.ConditionUnknown
	if owed := GetCondition(di.Status.Conditions, ConditionBackground); owed != nil && owed.Status == lsv1alpha1.ConditionTrue {
		status = lsv1alpha1.ConditionTrue
	}
	di.Status.Conditions = SetCondition(di.Status.Conditions, ConditionBackground, status, ReasonHookFailed, e.Message, now, e.Codes...)
}

// ShowsHookFailure reports whether the item still shows what [HookFailed] wrote.
func ShowsHookFailure(di *lsv1alpha1.DeployItem, d Decision) bool {
	if di == nil {
		return false
	}
	if d.Revision == Annotation {
		e := di.Status.LastError
		return e != nil && e.Operation == hookOperation && e.Reason == ReasonHookFailed
	}
	c := GetCondition(di.Status.Conditions, ConditionBackground)
	return c != nil && c.Status == lsv1alpha1.ConditionUnknown && c.Reason == ReasonHookFailed
}

// HookRecovered takes back what [HookFailed] wrote, once the hooks of an item that has nothing to do succeed again.
func HookRecovered(di *lsv1alpha1.DeployItem, d Decision) {
	switch {
	case !ShowsHookFailure(di, d):
	case d.Revision == Annotation:
		di.Status.LastError = nil
	default:
		di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionBackground)
	}
}

// hookOperation is the operation of an error that a hook caused outside a run.
const hookOperation = "ExecuteHooks"
