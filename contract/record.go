// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// MaxHistory is how many errors lastErrors keeps. Source: Landscaper.
const MaxHistory = 5

// recordError makes e lastError, or clears lastError when e is nil. lastTransitionTime is kept while the operation stays
// the same; under [RevisionJobID] firstError is set once and lastErrors keeps the newest five. The same content twice changes
// nothing, so a retry with the same error writes nothing.
func recordError(status *lsv1alpha1.DeployItemStatus, r Revision, e *lsv1alpha1.Error, now time.Time) {
	if status == nil {
		return
	}
	if e == nil {
		status.LastError = nil
		return
	}
	last := status.LastError
	if !sameError(last, e) {
		next := e.DeepCopy()
		next.LastUpdateTime, next.LastTransitionTime = stamp(now), stamp(now)
		if last != nil && last.Operation == e.Operation && !last.LastTransitionTime.IsZero() {
			next.LastTransitionTime = last.LastTransitionTime
		}
		status.LastError = next
	}
	rulesOf(r).recordHistory(status)
}

// sameError compares what errors say, not when.
func sameError(a, b *lsv1alpha1.Error) bool {
	return a != nil && b != nil && a.Operation == b.Operation && a.Reason == b.Reason && a.Message == b.Message &&
		slices.Equal(a.Codes, b.Codes)
}
