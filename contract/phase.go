// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

type phase = lsv1alpha1.DeployItemPhase

// The phases as constants: the API module keeps them in a variable that anybody could change.
const (
	phaseInit         = phase(lsv1alpha1.PhaseStringInit)
	phaseProgressing  = phase(lsv1alpha1.PhaseStringProgressing)
	phaseCompleting   = phase(lsv1alpha1.PhaseStringCompleting)
	phaseSucceeded    = phase(lsv1alpha1.PhaseStringSucceeded)
	phaseFailed       = phase(lsv1alpha1.PhaseStringFailed)
	phaseInitDelete   = phase(lsv1alpha1.PhaseStringInitDelete)
	phaseDeleting     = phase(lsv1alpha1.PhaseStringDeleting)
	phaseDeleteFailed = phase(lsv1alpha1.PhaseStringDeleteFailed)
	// phaseAborted was final in the annotation revision. It is not written any more, but an old item may have it.
	phaseAborted phase = "Aborted"
)

// IsFinal reports whether a phase ends a run: Succeeded, Failed, DeleteFailed and the old Aborted.
func IsFinal(p lsv1alpha1.DeployItemPhase) bool {
	switch p {
	case phaseSucceeded, phaseFailed, phaseDeleteFailed, phaseAborted:
		return true
	default:
		return false
	}
}

// IsWorking reports whether a stored phase is one of a run in progress.
func IsWorking(p lsv1alpha1.DeployItemPhase) bool {
	switch p {
	case phaseInit, phaseProgressing, phaseCompleting, phaseInitDelete, phaseDeleting:
		return true
	default:
		return false
	}
}

// isFailure reports whether a phase says that the last run failed.
func isFailure(p phase) bool { return p == phaseFailed || p == phaseDeleteFailed }

// HandedPhase is the phase that a deployer call finds in the item, whatever is stored: the phase is an output of the
// call, so "left alone" and "set to Progressing" stay apart. InitDelete for Delete under [RevisionJobID], else Init.
func HandedPhase(r Revision, a Action) lsv1alpha1.DeployItemPhase {
	if a == ActionDelete {
		return rulesOf(r).phases().initDelete
	}
	return phaseInit
}

// FailedPhase is the phase of a failed run: DeleteFailed for a deleting item under [RevisionJobID], else Failed.
func FailedPhase(r Revision, deleting bool) lsv1alpha1.DeployItemPhase {
	if deleting {
		return rulesOf(r).phases().deleteFailed
	}
	return phaseFailed
}

// startPhase is the phase that a started run stores.
func startPhase(r Revision, deleting bool) phase {
	if deleting {
		return rulesOf(r).phases().initDelete
	}
	return phaseInit
}

// workPhase is the phase of a run that goes on.
func workPhase(deleting bool) phase {
	if deleting {
		return phaseDeleting
	}
	return phaseProgressing
}

// storedPhase translates a phase into one that the revision may store.
func storedPhase(r Revision, p phase) phase {
	switch p {
	case phaseInitDelete:
		return rulesOf(r).phases().initDelete
	case phaseDeleteFailed:
		return rulesOf(r).phases().deleteFailed
	default:
		return p
	}
}
