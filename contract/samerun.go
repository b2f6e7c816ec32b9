// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsSameRun reports whether the stored item is still in the same run as the caller's item in memory. Call it after a
// status write has failed with a conflict, and rebase the write only if IsSameRun returns true. Otherwise the run has
// ended or another run has begun, and the phase and the error of the old run must not be written. The conditions for
// the same run depend on the kind of run:
//   - a job that Landscaper created: both items have the same job, and the stored item's job is not finished;
//   - a job that the deployer created (test-reconcile): the same conditions hold, or the job is not stored yet. In the
//     latter case, the stored item's job must be finished and must be the finished job that the caller's item contains;
//   - a background run: both items have the same finished job;
//   - a run under [RevisionAnnotation]: the stored item has a run in progress, and both items have the same start time.
func IsSameRun(stored, mine *lsv1alpha1.DeployItem, d Decision) bool {
	if stored == nil || mine == nil || stored.UID != mine.UID {
		return false
	}
	return getRules(d.Revision).isSameRun(&stored.Status, &mine.Status, d)
}

// equalSeconds reports whether both times are set and equal in whole seconds, as the API server stores them.
func equalSeconds(a, b *metav1.Time) bool {
	return !a.IsZero() && !b.IsZero() && notBefore(a, b) && notBefore(b, a)
}
