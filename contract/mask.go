// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// writablePhases are the phases that each revision may store.
var writablePhases = map[Revision][]phase{
	Annotation: {phaseInit, phaseProgressing, phaseDeleting, phaseSucceeded, phaseFailed},
	JobID: {
		phaseInit, phaseProgressing, phaseSucceeded, phaseFailed,
		phaseInitDelete, phaseDeleting, phaseDeleteFailed,
	},
}

// Mask sets back to before everything in after that the revision may not write: the last guard in front of a status
// write. [Annotation] may write phase, observedGeneration, lastReconcileTime, deployer, lastError, conditions,
// providerStatus and exportRef; [JobID] also the error history, transitionTimes, jobIDFinished and, on a finished item,
// a new jobID. Under JobID a final phase and jobIDFinished only pass together.
func Mask(r Revision, before, after *lsv1alpha1.DeployItemStatus) {
	if before == nil || after == nil {
		return
	}
	b := before.DeepCopy()
	after.DeployerPhase = b.DeployerPhase
	if !slices.Contains(writablePhases[r], after.Phase) {
		after.Phase = b.Phase
	}
	if r == JobID {
		maskJob(b, after)
		return
	}
	after.JobID, after.JobIDFinished, after.JobIDGenerationTime = b.JobID, b.JobIDFinished, b.JobIDGenerationTime
	after.TransitionTimes, after.FirstError, after.LastErrors = b.TransitionTimes, b.FirstError, b.LastErrors
}

// maskJob keeps the job's rules: only Landscaper changes the job ID of an unfinished job, and the finish is atomic.
func maskJob(b, after *lsv1alpha1.DeployItemStatus) {
	if after.JobID != b.JobID && (after.JobID == "" || (b.JobID != "" && b.JobID != b.JobIDFinished)) {
		after.JobID = b.JobID
	}
	if after.JobID == b.JobID {
		after.JobIDGenerationTime = b.JobIDGenerationTime
	}
	finishes := after.JobIDFinished != b.JobIDFinished
	if finishes && (after.JobIDFinished != after.JobID || !IsFinal(after.Phase)) {
		after.JobIDFinished = b.JobIDFinished
		finishes = false
	}
	// A final phase belongs to a finish, and a finished job keeps its final phase.
	finished := after.JobID == after.JobIDFinished
	if !finishes && (finished || IsFinal(after.Phase)) {
		after.Phase = b.Phase
	}
}
