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
	e := NewError(err, "ExecuteHooks", ReasonHookFailed, now)
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
