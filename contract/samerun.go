// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SameRun is asked when a status write met a conflict: is the item, as freshly read (stored), still in the run that
// wrote (mine, with that run's status in memory)? Only then may the write be rebased; else somebody ended the run or
// began another one, and phase and error of the old one must not be written.
//   - job ID: the same job, not finished by anybody;
//   - job ID with a new job of our own (test-reconcile): still the job that was finished when we looked;
//   - background: the same finished job;
//   - annotation: a run in progress that began when ours did.
func SameRun(stored, mine *lsv1alpha1.DeployItem, d Decision) bool {
	if stored == nil || mine == nil || stored.UID != mine.UID {
		return false
	}
	return rulesOf(d.Revision).sameRun(&stored.Status, &mine.Status, d)
}

// sameSecond reports whether both times are there and equal as the API server stores them.
func sameSecond(a, b *metav1.Time) bool {
	return !a.IsZero() && !b.IsZero() && notBefore(a, b) && notBefore(b, a)
}
