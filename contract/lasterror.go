// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// MaxLastErrors is the maximum number of errors in lastErrors, as in Landscaper.
const MaxLastErrors = 5

// recordError sets lastError to e, or clears lastError if e is nil. lastTransitionTime changes only if the operation
// changes. Under [RevisionJobID], firstError is set once, and lastErrors contains the newest five errors. Recording the
// same error again changes nothing, so a retry that fails with the same error causes no write.
func recordError(status *lsv1alpha1.DeployItemStatus, r Revision, e *lsv1alpha1.Error, now time.Time) {
	if status == nil {
		return
	}
	if e == nil {
		status.LastError = nil
		return
	}
	last := status.LastError
	if !equalErrors(last, e) {
		next := e.DeepCopy()
		next.LastUpdateTime, next.LastTransitionTime = toStoredTime(now), toStoredTime(now)
		if last != nil && last.Operation == e.Operation && !last.LastTransitionTime.IsZero() {
			next.LastTransitionTime = last.LastTransitionTime
		}
		status.LastError = next
	}
	getRules(r).recordHistory(status)
}

// equalErrors compares errors without their times.
func equalErrors(a, b *lsv1alpha1.Error) bool {
	return a != nil && b != nil && a.Operation == b.Operation && a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Codes, b.Codes)
}
