// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/internal/waiting"
)

// WaitFor returns an error for an action or a hook that is not done yet, but has not failed. Return this error from
// Reconcile, Delete or ForceReconcile, or from a hook. The item stays in phase Progressing (or Deleting), its Waiting
// condition shows the given reason, and lastError is cleared. The action is called again after the given delay, or
// earlier if a hook or Runtime.Trigger requests a reconcile. If the delay is zero or negative, the action is called
// again after one minute, or earlier after such a request. A positive delay of less than one second is raised to one
// second. The deadline of the run does not move. If the error of WaitFor is joined with another error, the other error
// takes precedence.
//
// If a hook before an action returns the error, the action is not called, and the hook is called again after the delay.
// If an End hook returns it, the run does not end, and the action is called again. If no run is due, the item does not
// change, and it is reconciled again after the delay.
func WaitFor(reason string, after time.Duration) error {
	return &waiting.Error{Reason: reason, After: after}
}

// AsWait reports whether err consists only of errors of WaitFor. If so, it returns the reason and the delay of the
// error with the shortest delay.
func AsWait(err error) (reason string, after time.Duration, ok bool) {
	w, ok := waiting.AsError(err)
	if !ok {
		return "", 0, false
	}
	return w.Reason, w.Delay(), true
}

// ErrSuperseded is returned by Checkpoint if the job is no longer current, because it was interrupted or another job
// began. The deployer should return.
var ErrSuperseded = statuswriter.ErrSuperseded

// These are the causes with which the library cancels the context of a running call.
var (
	// ErrAborted indicates that an abort was requested for the item. The library calls Abort after the cancelled call
	// has returned.
	ErrAborted = itemstate.ErrAborted
	// ErrInterrupted indicates that Landscaper ended the job while the call ran.
	ErrInterrupted = itemstate.ErrInterrupted
	// ErrDeadline indicates that the item's timeout passed.
	ErrDeadline = itemstate.ErrDeadline
	// ErrShutdown indicates that the process is stopping and its grace period is over.
	ErrShutdown = errors.New("the deployer is shutting down")
)

// PanicError is the error to which the library converts a panic of a deployer.
type PanicError struct {
	// Value is the value that was passed to panic.
	Value any
	// Stack is the stack of the goroutine. It is only for the log.
	Stack []byte
}

// Error returns the text of the value, without the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// ErrUnchanged is returned by Reconcile or ForceReconcile to indicate success with nothing to report, because
// everything was already up to date. If a background run of an item under the job-ID revision returns ErrUnchanged,
// nothing is written, not even lastReconcileTime. A run that a schedule requested must therefore return nil instead,
// because the schedule computes the next run from lastReconcileTime. The library still writes if the status was changed
// in memory, if there is a patch, if the condition BackgroundReconcile does not show success, or if the annotation
// force-reconcile must be removed.
//
// In a job, and under the annotation revision, ErrUnchanged has the same meaning as nil. If ErrUnchanged is joined with
// another error or with WaitFor, the other error takes precedence. Delete and Abort must not return ErrUnchanged. If
// they do, ErrUnchanged is treated like any other error.
var ErrUnchanged = errors.New("nothing has changed")

// isUnchanged reports whether an action returned ErrUnchanged and nothing else.
func isUnchanged(action contract.Action, err error) bool {
	return (action == contract.ActionReconcile || action == contract.ActionForceReconcile) && onlyUnchanged(err)
}

// onlyUnchanged reports whether all leaf errors of err are ErrUnchanged.
func onlyUnchanged(err error) bool {
	var joined []error
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand: every leaf counts
	case interface{ Unwrap() error }:
		return onlyUnchanged(e.Unwrap())
	case interface{ Unwrap() []error }:
		joined = e.Unwrap()
	case utilerrors.Aggregate: // this interface has no Unwrap method
		joined = e.Errors()
	default:
		return err == ErrUnchanged //nolint:errorlint // a leaf
	}
	return len(joined) > 0 && !slices.ContainsFunc(joined, func(err error) bool { return !onlyUnchanged(err) })
}

// keepPhaseError is the error that a ported deployer returns to the library. It makes the library store the phase that
// the deployer set. The field `err` is the error of the call, which may be nil.
type keepPhaseError struct{ err error }

func (k *keepPhaseError) Error() string { return fmt.Sprint(k.err) }
func (k *keepPhaseError) Unwrap() error { return k.err }

// splitKeptPhase returns the error of a call, and reports whether the phase that the deployer set must be stored.
func splitKeptPhase(err error) (rest error, keep bool) {
	if k, ok := errors.AsType[*keepPhaseError](err); ok {
		return k.err, true
	}
	return err, false
}

// statusWrittenError ends the run of a deployer that wrote the status of its item with its own client.
type statusWrittenError struct{ field string }

func (e *statusWrittenError) Error() string {
	return fmt.Sprintf("the deployer wrote %s of the deploy item with a client of its own: a ported deployer must change di.Status in memory "+
		"and leave the write to the library", e.field)
}

// LandscaperError returns the error in the form in which it is written to the status of the item.
func (e *statusWrittenError) LandscaperError() *lsv1alpha1.Error {
	codes := []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorInternalProblem}
	return &lsv1alpha1.Error{Operation: "CheckDeployItem", Reason: "StatusWritten", Message: e.Error(), Codes: codes}
}

// getCause returns why a call was cancelled, or nil if it was not. If the deployer wrote the status with its own
// client, getCause returns nil instead of ErrInterrupted, because the write of the deployer may have caused the
// cancellation.
func getCause(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if _, own := errors.AsType[*statusWrittenError](err); own && errors.Is(cause, ErrInterrupted) {
		return nil
	}
	return cause
}
