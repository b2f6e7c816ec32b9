// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"cmp"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// Return is what came back from a deployer call.
type Return struct {
	// Revision and Action are those of the decision; Deleting: the item has a deletionTimestamp.
	Revision Revision
	Action   Action
	Deleting bool
	// Phase is what the deployer left in di.Status.Phase; it was handed [HandedPhase].
	Phase lsv1alpha1.DeployItemPhase
	// KeepPhase: the phase is the deployer's memory, as in Landscaper's library. One of a run in progress is stored as the
	// deployer left it, also with an error, and means that the call is not done.
	KeepPhase bool
	// Waiting: it returned "wait for" and no other error. Message is what it waits for.
	Waiting bool
	Message string
	// Err is any other error.
	Err error
	// LastError is what the deployer left in di.Status.LastError; the text of a failure without an error.
	LastError *lsv1alpha1.Error
	// Cause is why the run had not come to an end before the call, nil when that is not known; the error of an aborted
	// run keeps its text.
	Cause *lsv1alpha1.Error
	// Now is the time of the return.
	Now time.Time
}

// Outcome is what a return means for the item. [Apply] writes it.
type Outcome struct {
	// Phase to store; empty: leave the stored one.
	Phase lsv1alpha1.DeployItemPhase
	// Final: the run ends with this: phase, jobIDFinished and finishedTime together.
	Final bool
	// Done: the action succeeded. After Delete the finalizer goes; nothing of the outcome needs to be stored then.
	Done bool
	// Waiting: not done and not a failure; to be called again. Message is what for.
	Waiting bool
	Message string
	// Consumed: the operation annotation (force-reconcile; abort with its abort-time) has had its effect and goes, after
	// the outcome was stored.
	Consumed bool
	// Err goes to lastError; nil clears it.
	Err *lsv1alpha1.Error
}

// Judge tells what a deployer's return means. Errors win over everything else that came back; without an error the phase
// that the deployer left decides, and an unknown or misplaced phase is an internal problem that fails the run.
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

// TimedOut is the outcome of a run, or of an Abort, whose time is over: e is [TimeoutError] or [AbortTimeoutError].
func TimedOut(r Revision, deleting bool, e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r, deleting), Final: true, Consumed: true, Err: e}
}

// operation is the word for the action in lastError.
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

// failedWith applies the error rules: Abort is tried again until its deadline; an unrecoverable code, or a failed phase
// that the deployer set itself, ends the run; anything else is tried again, and the stored phase stays unless the deployer
// keeps its own or says that the run makes progress.
func (r Return) failedWith(e *lsv1alpha1.Error) Outcome {
	switch {
	case r.Action != ActionAbort && (Unrecoverable(e.Codes) || isFailure(r.Phase)):
		return r.failed(e)
	case r.keepsPhase():
		return Outcome{Phase: r.Phase, Err: e}
	}
	return Outcome{Phase: r.progress(), Err: e}
}

// keepsPhase reports whether the phase is one of a run in progress, and is to be stored as it is.
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

// progress is the phase of a run that goes on after an error: the one that says so, if the deployer left it, else none.
func (r Return) progress() lsv1alpha1.DeployItemPhase {
	if r.Action != ActionAbort && !r.KeepPhase && (r.Phase == phaseProgressing || r.Action == ActionDelete && r.Phase == phaseDeleting) {
		return workPhase(r.deletes())
	}
	return ""
}

func (r Return) failed(e *lsv1alpha1.Error) Outcome {
	return Outcome{Phase: FailedPhase(r.Revision, r.deletes()), Final: true, Err: e}
}

// aborted: Abort that returns without an error ends the run as failed, unless it says that it is not done yet.
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

// succeeded: Delete has nothing to store, the item goes with its finalizer. A force-reconcile on a terminating item does
// not end the run: Delete follows.
func (r Return) succeeded() Outcome {
	if r.deletes() {
		return Outcome{Done: true}
	}
	return Outcome{Phase: phaseSucceeded, Final: true, Done: true}
}

// ownError is the error that the deployer left in the status, else one that says that it left none.
func (r Return) ownError() *lsv1alpha1.Error {
	e := r.LastError
	if e == nil || (e.Message == "" && e.Reason == "" && len(e.Codes) == 0) {
		return newError(r.operation(), errorReasonDeployerFailed,
			fmt.Sprintf("the deployer set phase %s and gave no error", r.Phase), r.Now)
	}
	return newError(cmp.Or(e.Operation, r.operation()), cmp.Or(e.Reason, errorReasonDeployerFailed), e.Message, r.Now, e.Codes...)
}
