// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Mask resets everything in after that the revision may not write to its value in before. It is the last check before a
// status write. [RevisionAnnotation] may write phase, observedGeneration, lastReconcileTime, deployer, lastError,
// conditions, providerStatus and exportRef. [RevisionJobID] may also write the error history, transitionTimes,
// jobIDFinished and, on a finished item, a new jobID. Under RevisionJobID a final phase and jobIDFinished pass only
// together.
func Mask(r Revision, before, after *lsv1alpha1.DeployItemStatus) {
	if before == nil || after == nil {
		return
	}
	b := before.DeepCopy()
	after.DeployerPhase = b.DeployerPhase
	if !slices.Contains(rulesOf(r).phases().writable, after.Phase) {
		after.Phase = b.Phase
	}
	rulesOf(r).mask(b, after)
}
