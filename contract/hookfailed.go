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
	e := NewError(err, hookOperation, conditionReasonHookFailed, now)
	rulesOf(d.Revision).hookFailed(&di.Status, e, now)
}

// ShowsHookFailure reports whether the item still shows what [HookFailed] wrote.
func ShowsHookFailure(di *lsv1alpha1.DeployItem, d Decision) bool {
	return di != nil && rulesOf(d.Revision).showsHookFailure(&di.Status)
}

// HookRecovered takes back what [HookFailed] wrote, once the hooks of an item that has nothing to do succeed again.
func HookRecovered(di *lsv1alpha1.DeployItem, d Decision) {
	if ShowsHookFailure(di, d) {
		rulesOf(d.Revision).hookRecovered(&di.Status)
	}
}

// ShowsError reports whether the item shows e already. Run or no run, each error has its place: lastError, or
// [ConditionBackground] for background runs and, under [RevisionJobID], for hooks that fail while no run is due.
func ShowsError(di *lsv1alpha1.DeployItem, d Decision, e *lsv1alpha1.Error) bool {
	switch {
	case di == nil || e == nil:
		return false
	case d.Background:
		return showsInBackground(&di.Status, e)
	case !d.Due:
		return rulesOf(d.Revision).showsHookError(&di.Status, e)
	default:
		return sameError(e, di.Status.LastError)
	}
}

// showsInBackground reports whether [ConditionBackground] shows the message of e.
func showsInBackground(status *lsv1alpha1.DeployItemStatus, e *lsv1alpha1.Error) bool {
	shown := GetCondition(status.Conditions, ConditionBackground)
	return shown != nil && shown.Message == e.Message
}

// hookOperation is the operation of an error that a hook caused outside a run.
const hookOperation = "ExecuteHooks"
