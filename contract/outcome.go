// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// CallResult describes the result of a deployer call.
type CallResult struct {
	// Revision and Action are copied from the decision. Deleting reports whether the item has a deletionTimestamp.
	Revision Revision
	Action   Action
	Deleting bool
	// Phase is the value of di.Status.Phase after the call. Before the call, it was the result of [InitialPhase].
	Phase lsv1alpha1.DeployItemPhase
	// KeepPhase lets the deployer manage the phase, as in Landscaper's library. If the deployer sets a phase that
	// belongs to a run in progress, such as Progressing, this phase is stored unchanged, even if the call returns an
	// error. If the call returns no error, such a phase means that the deployer is not done.
	KeepPhase bool
	// Waiting reports whether the deployer returned an error of deployerlib.WaitFor and no other error. Message describes
	// what the deployer waits for.
	Waiting bool
	Message string
	// Err is the error of the call. It is nil if the call returned an error of deployerlib.WaitFor and no other error.
	// Err takes precedence over Waiting.
	Err error
	// LastError is the value of di.Status.LastError after the call. It is used if the deployer set a failed phase but
	// returned no error.
	LastError *lsv1alpha1.Error
	// Cause is the last known reason why the run had not ended before the call, or nil. If the run is aborted, lastError
	// includes the text of Cause.
	Cause *lsv1alpha1.Error
	// Now is the time at which the call returned.
	Now time.Time
}

// Outcome describes the effect of a deployer's result on the item. [ApplyOutcome] writes it to the status.
type Outcome struct {
	// Phase is the phase to store. If it is empty, the stored phase stays.
	Phase lsv1alpha1.DeployItemPhase
	// Final reports whether the run ends. In this case, phase, jobIDFinished and finishedTime are written together.
	Final bool
	// Done reports whether the action succeeded. After a successful Delete, the finalizer is removed, and the outcome
	// need not be stored.
	Done bool
	// Waiting reports whether the deployer must be called again, because it is neither done nor failed. Message describes
	// what the deployer waits for.
	Waiting bool
	Message string
	// Consumed reports whether the operation annotation (force-reconcile or abort) has taken effect. In this case, store
	// the outcome, and then remove the annotation and, for an abort, the abort-time annotation.
	Consumed bool
	// Err becomes lastError. If Err is nil, lastError is cleared.
	Err *lsv1alpha1.Error
}

// DetermineOutcome returns the outcome for a deployer's result. An error takes precedence over everything else. Without
// an error, the phase after the call determines the outcome. If this phase is unknown, or if the deployer must not set
// it, the run fails with the code ERR_INTERNAL_PROBLEM.
func DetermineOutcome(r CallResult) Outcome {
	var o Outcome
	switch {
	case r.Err != nil:
		o = r.toErrorOutcome(NewError(r.Err, r.getOperation(), r.getOperation()+"Failed", r.Now))
	case r.Action == ActionAbort:
		o = r.toAbortedOutcome()
	case r.Waiting:
		o = r.toWaitingOutcome()
	default:
		o = r.toOutcomeByPhase()
	}
	switch r.Action {
	case ActionForceReconcile:
		o.Consumed = o.Done || o.Waiting || o.Final
	case ActionAbort:
		o.Consumed = o.Final
	case ActionNone, ActionDelete, ActionReconcile:
	}
	return o
}

// EndedByLibrary returns the outcome of a run or an Abort that did not end in time. The argument e is the result of
// [NewTimeoutError] or [NewAbortTimeoutError].
func EndedByLibrary(r Revision, deleting bool, e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r, deleting), Final: true, Consumed: true, Err: e}
}

// getOperation returns the value of lastError.operation for an error of this call.
func (r CallResult) getOperation() string {
	switch r.Action {
	case ActionAbort:
		return "Abort"
	case ActionForceReconcile:
		return "ForceReconcile"
	case ActionDelete:
		return "Delete"
	case ActionNone, ActionReconcile:
	}
	return "Reconcile"
}

// isDeletion reports whether the run belongs to a deletion.
func (r CallResult) isDeletion() bool { return r.Deleting || r.Action == ActionDelete }

// toErrorOutcome returns the outcome of a call that failed with the error e. Abort is retried until its deadline. Any
// other action ends the run if the error has an unrecoverable code or if the deployer set a failed phase. Otherwise,
// the call is retried, and the stored phase does not change unless the deployer manages the phase or reports progress.
func (r CallResult) toErrorOutcome(e *lsv1alpha1.Error) Outcome {
	switch {
	case r.Action != ActionAbort && (HasUnrecoverableCode(e.Codes) || isFailure(r.Phase)):
		return r.toFailedOutcome(e)
	case r.isPhaseKept():
		return Outcome{Phase: r.Phase, Err: e}
	}
	return Outcome{Phase: r.getProgressPhase(), Err: e}
}

// isPhaseKept reports whether the phase that the deployer set is stored unchanged. This is the case if the deployer
// manages the phase and set a phase that belongs to a run in progress.
func (r CallResult) isPhaseKept() bool {
	switch r.Phase {
	case phaseInit, phaseProgressing:
		return r.KeepPhase && !r.isDeletion()
	case phaseInitDelete, phaseDeleting:
		return r.KeepPhase && r.isDeletion()
	default:
		return false
	}
}

// getProgressPhase returns the phase to store after an error. If the deployer reported progress, this is Progressing or
// Deleting. Otherwise it is empty, and the stored phase does not change.
func (r CallResult) getProgressPhase() lsv1alpha1.DeployItemPhase {
	if r.Action != ActionAbort && !r.KeepPhase && (r.Phase == phaseProgressing || r.Action == ActionDelete && r.Phase == phaseDeleting) {
		return runPhase(r.isDeletion())
	}
	return ""
}

func (r CallResult) toFailedOutcome(e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r.Revision, r.isDeletion()), Final: true, Err: e}
}

// toAbortedOutcome returns the outcome of a call of Abort that returned no error. The run ends as failed, unless Abort
// waits.
func (r CallResult) toAbortedOutcome() Outcome {
	if r.Waiting {
		return Outcome{Waiting: true, Message: r.Message}
	}
	return r.toFailedOutcome(newError(r.getOperation(), AbortedReason, withCause("the run was aborted", r.Cause), r.Now))
}

func (r CallResult) toWaitingOutcome() Outcome {
	return Outcome{Phase: runPhase(r.isDeletion()), Waiting: true, Message: r.Message}
}

func (r CallResult) toOutcomeByPhase() Outcome {
	switch {
	case r.isPhaseKept():
		return Outcome{Phase: r.Phase, Waiting: true, Message: r.Message}
	case r.Phase == "" || r.Phase == InitialPhase(r.Revision, r.Action) || r.Phase == phaseSucceeded:
		return r.toSucceededOutcome()
	case r.Phase == phaseProgressing || (r.Action == ActionDelete && r.Phase == phaseDeleting):
		return r.toWaitingOutcome()
	case r.Phase == phaseFailed || (r.Action == ActionDelete && r.Phase == phaseDeleteFailed):
		return r.toFailedOutcome(r.getDeployerError())
	default:
		return r.toFailedOutcome(newError(r.getOperation(), errorReasonInvalidPhase,
			fmt.Sprintf("the deployer left phase %q, which %s must not set", r.Phase, r.getOperation()),
			r.Now, lsv1alpha1.ErrorInternalProblem))
	}
}

// toSucceededOutcome returns the outcome of a successful action. After a Delete, nothing is stored, because the item no
// longer exists once its finalizer is removed. A force-reconcile of a terminating item does not end the run, because
// Delete follows.
func (r CallResult) toSucceededOutcome() Outcome {
	if r.isDeletion() {
		return Outcome{Done: true}
	}
	return Outcome{Phase: phaseSucceeded, Final: true, Done: true}
}

// getDeployerError returns the error that the deployer set in the status. If the deployer set no error,
// getDeployerError returns an error with the reason DeployerFailed.
func (r CallResult) getDeployerError() *lsv1alpha1.Error {
	e := r.LastError
	if e == nil || (e.Message == "" && e.Reason == "" && len(e.Codes) == 0) {
		return newError(r.getOperation(), errorReasonDeployerFailed,
			fmt.Sprintf("the deployer set phase %s and returned no error", r.Phase), r.Now)
	}
	return newError(cmp.Or(e.Operation, r.getOperation()), cmp.Or(e.Reason, errorReasonDeployerFailed), e.Message, r.Now, e.Codes...)
}
