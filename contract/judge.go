// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Return is what a deployer call returned.
type Return struct {
	// Revision and Action are those of the decision. Deleting reports that the item has a deletionTimestamp.
	Revision Revision
	Action   Action
	Deleting bool
	// Phase is the phase that the deployer left in di.Status.Phase. The call started with [HandedPhase].
	Phase lsv1alpha1.DeployItemPhase
	// KeepPhase makes the phase the deployer's to manage, as in Landscaper's library: a phase of a run in progress is
	// stored as the deployer left it, even with an error, and means that the call is not done.
	KeepPhase bool
	// Waiting reports that the deployer returned a "wait for" error and no other. Message says what it waits for.
	Waiting bool
	Message string
	// Err is any other error.
	Err error
	// LastError is what the deployer left in di.Status.LastError. If a run fails without an error, its text is used.
	LastError *lsv1alpha1.Error
	// Cause is the last known reason why the run had not ended before the call, or nil. The error of an aborted run
	// includes its text.
	Cause *lsv1alpha1.Error
	// Now is the time at which the call returned.
	Now time.Time
}

// Outcome is the meaning of a deployer's result for the item. [Apply] writes it.
type Outcome struct {
	// Phase is the phase to store. If it is empty, the stored phase stays.
	Phase lsv1alpha1.DeployItemPhase
	// Final reports that the run ends: phase, jobIDFinished and finishedTime are written together.
	Final bool
	// Done reports that the action succeeded. After a successful Delete the finalizer is removed, and the outcome need
	// not be stored.
	Done bool
	// Waiting reports that the deployer is not done, has not failed and must be called again. Message says what it
	// waits for.
	Waiting bool
	Message string
	// Consumed reports that the operation annotation (force-reconcile, or abort with its abort-time) has taken effect.
	// Remove it after the outcome was stored.
	Consumed bool
	// Err becomes lastError. If it is nil, lastError is cleared.
	Err *lsv1alpha1.Error
}

// Judge returns the outcome for a deployer's result. An error takes precedence over everything else. Without an error
// the phase that the deployer left decides. An unknown phase, or one that the deployer must not set, fails the run as
// an internal problem.
func Judge(r Return) Outcome {
	var o Outcome
	switch {
	case r.Err != nil:
		o = r.failedWith(NewError(r.Err, r.operation(), r.operation()+"Failed", r.Now))
	case r.Action == ActionAbort:
		o = r.aborted()
	case r.Waiting:
		o = r.goesOn()
	default:
		o = r.byPhase()
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

// TimedOut returns the outcome of a run or an Abort that did not end in time. e is a [TimeoutError] or an
// [AbortTimeoutError].
func TimedOut(r Revision, deleting bool, e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r, deleting), Final: true, Consumed: true, Err: e}
}

// operation returns the operation for lastError.
func (r Return) operation() string {
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

// deletes reports whether the run belongs to a deletion.
func (r Return) deletes() bool { return r.Deleting || r.Action == ActionDelete }

// failedWith applies the error rules. Abort is retried until its deadline. An unrecoverable code, or a failed phase
// that the deployer set, ends the run. Anything else is retried, and the stored phase stays unless the deployer manages
// the phase or reports progress.
func (r Return) failedWith(e *lsv1alpha1.Error) Outcome {
	switch {
	case r.Action != ActionAbort && (Unrecoverable(e.Codes) || isFailure(r.Phase)):
		return r.failed(e)
	case r.keepsPhase():
		return Outcome{Phase: r.Phase, Err: e}
	}
	return Outcome{Phase: r.progress(), Err: e}
}

// keepsPhase reports whether the phase is one of a run in progress that must be stored as it is.
func (r Return) keepsPhase() bool {
	switch r.Phase {
	case phaseInit, phaseProgressing:
		return r.KeepPhase && !r.deletes()
	case phaseInitDelete, phaseDeleting:
		return r.KeepPhase && r.deletes()
	default:
		return false
	}
}

// progress returns the phase of a run that continues after an error if the deployer left such a phase, and ""
// otherwise.
func (r Return) progress() lsv1alpha1.DeployItemPhase {
	if r.Action != ActionAbort && !r.KeepPhase && (r.Phase == phaseProgressing || r.Action == ActionDelete && r.Phase == phaseDeleting) {
		return workPhase(r.deletes())
	}
	return ""
}

func (r Return) failed(e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r.Revision, r.deletes()), Final: true, Err: e}
}

// aborted returns the outcome of an Abort without an error: the run ends as failed unless Abort is not done yet.
func (r Return) aborted() Outcome {
	if r.Waiting {
		return Outcome{Waiting: true, Message: r.Message}
	}
	return r.failed(newError(r.operation(), AbortedReason, withCause("the run was aborted", r.Cause), r.Now))
}

func (r Return) goesOn() Outcome {
	return Outcome{Phase: workPhase(r.deletes()), Waiting: true, Message: r.Message}
}

func (r Return) byPhase() Outcome {
	switch {
	case r.keepsPhase():
		return Outcome{Phase: r.Phase, Waiting: true, Message: r.Message}
	case r.Phase == "" || r.Phase == HandedPhase(r.Revision, r.Action) || r.Phase == phaseSucceeded:
		return r.succeeded()
	case r.Phase == phaseProgressing || (r.Action == ActionDelete && r.Phase == phaseDeleting):
		return r.goesOn()
	case r.Phase == phaseFailed || (r.Action == ActionDelete && r.Phase == phaseDeleteFailed):
		return r.failed(r.ownError())
	default:
		return r.failed(newError(r.operation(), errorReasonInvalidPhase,
			fmt.Sprintf("the deployer left phase %q, which %s must not set", r.Phase, r.operation()),
			r.Now, lsv1alpha1.ErrorInternalProblem))
	}
}

// succeeded returns the outcome of a successful action. Delete stores nothing, because the item is removed with its
// finalizer. A force-reconcile on a terminating item does not end the run, because Delete follows.
func (r Return) succeeded() Outcome {
	if r.deletes() {
		return Outcome{Done: true}
	}
	return Outcome{Phase: phaseSucceeded, Final: true, Done: true}
}

// ownError returns the error that the deployer left in the status, or one that says that it left none.
func (r Return) ownError() *lsv1alpha1.Error {
	e := r.LastError
	if e == nil || (e.Message == "" && e.Reason == "" && len(e.Codes) == 0) {
		return newError(r.operation(), errorReasonDeployerFailed,
			fmt.Sprintf("the deployer set phase %s and returned no error", r.Phase), r.Now)
	}
	return newError(cmp.Or(e.Operation, r.operation()), cmp.Or(e.Reason, errorReasonDeployerFailed), e.Message, r.Now, e.Codes...)
}
