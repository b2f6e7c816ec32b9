// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// RevertForbiddenChanges compares the status before the deployer's changes with the status after them, and undoes the
// changes that a deployer must not make under the revision. It writes only to after, and is the last check before a
// status is written. Under [RevisionAnnotation], a deployer may write phase, observedGeneration, lastReconcileTime,
// deployer, lastError, conditions, providerStatus and exportRef. Under [RevisionJobID], it may also write the error
// history, transitionTimes, jobIDFinished and, if the job is finished, a new jobID. Under RevisionJobID, it accepts a
// new final phase and a new jobIDFinished only together.
func RevertForbiddenChanges(r Revision, before, after *lsv1alpha1.DeployItemStatus) {
	if before == nil || after == nil {
		return
	}
	b := before.DeepCopy()
	after.DeployerPhase = b.DeployerPhase
	if !slices.Contains(getRules(r).listPhases().writable, after.Phase) {
		after.Phase = b.Phase
	}
	getRules(r).mask(b, after)
}
