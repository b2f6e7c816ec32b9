// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

type phase = lsv1alpha1.DeployItemPhase

// These constants are the phases. The API module defines the phases as variables, which other packages can change.
const (
	phaseInit         = phase(lsv1alpha1.PhaseStringInit)
	phaseProgressing  = phase(lsv1alpha1.PhaseStringProgressing)
	phaseCompleting   = phase(lsv1alpha1.PhaseStringCompleting)
	phaseSucceeded    = phase(lsv1alpha1.PhaseStringSucceeded)
	phaseFailed       = phase(lsv1alpha1.PhaseStringFailed)
	phaseInitDelete   = phase(lsv1alpha1.PhaseStringInitDelete)
	phaseDeleting     = phase(lsv1alpha1.PhaseStringDeleting)
	phaseDeleteFailed = phase(lsv1alpha1.PhaseStringDeleteFailed)
	// phaseAborted was final in the annotation revision. It is no longer written, but old items may have it.
	phaseAborted phase = "Aborted"
)

// IsFinal reports whether a phase ends a run. The final phases are Succeeded, Failed, DeleteFailed and the obsolete
// Aborted.
func IsFinal(p lsv1alpha1.DeployItemPhase) bool {
	switch p {
	case phaseSucceeded, phaseFailed, phaseDeleteFailed, phaseAborted:
		return true
	default:
		return false
	}
}

// IsInProgress reports whether a stored phase belongs to a run in progress.
func IsInProgress(p lsv1alpha1.DeployItemPhase) bool {
	switch p {
	case phaseInit, phaseProgressing, phaseCompleting, phaseInitDelete, phaseDeleting:
		return true
	default:
		return false
	}
}

// isFailure reports whether a phase means that the last run failed.
func isFailure(p phase) bool { return p == phaseFailed || p == phaseDeleteFailed }

// InitialPhase returns the phase that the item has when a deployer is called: InitDelete for Delete under
// [RevisionJobID], and Init otherwise. It does not depend on the stored phase. The caller can therefore distinguish a
// deployer that did not change the phase from a deployer that set the phase to Progressing.
func InitialPhase(r Revision, a Action) lsv1alpha1.DeployItemPhase {
	if a == ActionDelete {
		return getRules(r).listPhases().initDelete
	}
	return phaseInit
}

// FailedPhase returns the phase of a failed run: DeleteFailed for a terminating item under [RevisionJobID], and Failed
// otherwise.
func FailedPhase(r Revision, deleting bool) lsv1alpha1.DeployItemPhase {
	if deleting {
		return getRules(r).listPhases().deleteFailed
	}
	return phaseFailed
}

// startPhase returns the phase at the start of a run.
func startPhase(r Revision, deleting bool) phase {
	if deleting {
		return getRules(r).listPhases().initDelete
	}
	return phaseInit
}

// runPhase returns the phase of a run in progress.
func runPhase(deleting bool) phase {
	if deleting {
		return phaseDeleting
	}
	return phaseProgressing
}

// toStoredPhase converts p to a phase that may be stored under the revision.
func toStoredPhase(r Revision, p phase) phase {
	switch p {
	case phaseInitDelete:
		return getRules(r).listPhases().initDelete
	case phaseDeleteFailed:
		return getRules(r).listPhases().deleteFailed
	default:
		return p
	}
}
