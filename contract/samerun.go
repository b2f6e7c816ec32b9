// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SameRun reports whether a stored item is still in the run of mine, which has the status of that run in memory. Call
// it after a conflict of a status write: only a write of the same run may be rebased. Otherwise the run has ended or
// another one has begun, and the phase and error of the old run must not be written. The run is the same in these
// cases:
//   - job ID: the same job, and it is not finished;
//   - job ID with a job that the deployer began itself (test-reconcile): the job that was finished when the item was
//     read;
//   - background: the same finished job;
//   - annotation: a run in progress with the same start time.
func SameRun(stored, mine *lsv1alpha1.DeployItem, d Decision) bool {
	if stored == nil || mine == nil || stored.UID != mine.UID {
		return false
	}
	return rulesOf(d.Revision).sameRun(&stored.Status, &mine.Status, d)
}

// sameSecond reports whether both times are set and equal in whole seconds, as the API server stores them.
func sameSecond(a, b *metav1.Time) bool {
	return !a.IsZero() && !b.IsZero() && notBefore(a, b) && notBefore(b, a)
}
