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
)

// waitFallback is the longest delay of an item that waits for a trigger.
const waitFallback = time.Minute

// waitError is what WaitFor returns.
type waitError struct {
	reason string
	after  time.Duration
}

// Error returns what the action waits for.
func (w *waitError) Error() string { return "waiting for " + w.reason }

// WaitFor returns an error that says that the action is not done yet and has not failed. Return it from Reconcile,
// Delete or ForceReconcile. The item stays in phase Progressing (or Deleting), its Waiting condition shows reason,
// lastError is cleared, and the action is called again after the given delay, or earlier if a hook or Runtime.Trigger
// requests it. If after is zero or less, the action waits for a trigger, but at most one minute. If the error is joined
// with another one, the other error takes precedence.
func WaitFor(reason string, after time.Duration) error {
	return &waitError{reason: reason, after: after}
}

// AsWait reports whether err consists only of errors of WaitFor. If so, it returns reason and delay of the shortest
// wait.
func AsWait(err error) (reason string, after time.Duration, ok bool) {
	w, ok := waitOf(err)
	if !ok {
		return "", 0, false
	}
	return w.reason, w.delay(), true
}

// delay returns the delay before the next call.
func (w *waitError) delay() time.Duration {
	if w.after <= 0 {
		return waitFallback
	}
	return w.after
}

// waitOf returns the wait in err, and whether err is nothing but waits.
func waitOf(err error) (*waitError, bool) {
	switch e := err.(type) { //nolint:errorlint // the tree is walked by hand: every leaf must be a wait
	case nil:
		return nil, false
	case *waitError:
		return e, true
	case interface{ Unwrap() []error }:
		return waitOfAll(e.Unwrap())
	case utilerrors.Aggregate: // has no Unwrap
		return waitOfAll(e.Errors())
	case interface{ Unwrap() error }:
		return waitOf(e.Unwrap())
	}
	return nil, false
}

// waitOfAll returns the shortest of the waits if all errs are waits.
func waitOfAll(errs []error) (*waitError, bool) {
	var shortest *waitError
	for _, err := range errs {
		w, ok := waitOf(err)
		if !ok {
			return nil, false
		}
		if shortest == nil || w.delay() < shortest.delay() {
			shortest = w
		}
	}
	return shortest, shortest != nil
}

// ErrSuperseded is returned by Checkpoint if the job is no longer current, because it was interrupted or another job
// began. The deployer should return.
var ErrSuperseded = statuswriter.ErrSuperseded

// Causes with which the library cancels the context of a running call.
var (
	// ErrAborted indicates that the item has the abort operation. Abort is called after the call has returned.
	ErrAborted = itemstate.ErrAborted
	// ErrInterrupted indicates that Landscaper ended the job while the call ran.
	ErrInterrupted = itemstate.ErrInterrupted
	// ErrDeadline indicates that the item's timeout passed.
	ErrDeadline = itemstate.ErrDeadline
	// ErrShutdown indicates that the process is stopping and its grace period is over.
	ErrShutdown = errors.New("the deployer is shutting down")
)

// PanicError is the error that results from a panic in a deployer.
type PanicError struct {
	// Value is the value of the panic.
	Value any
	// Stack is the stack of the goroutine. It is only for the log.
	Stack []byte
}

// Error returns the text of the value, without the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// ErrUnchanged is returned by Reconcile or ForceReconcile to indicate success with nothing to report: everything was
// already as it should be. A background run of a finished job-ID item that returns it writes nothing, not even
// lastReconcileTime. A run that a schedule requested must therefore return nil, because the schedule continues from
// that time. The library still writes if the status was changed in memory, if there is a patch, if the condition
// BackgroundReconcile does not show success, or if the annotation force-reconcile must be removed.
//
// In a job, and under the annotation revision, it has the same meaning as nil. If it is joined with another error or
// with WaitFor, that takes precedence. Delete and Abort must not return it; there it is an ordinary error.
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
	case utilerrors.Aggregate: // has no Unwrap
		joined = e.Errors()
	default:
		return err == ErrUnchanged //nolint:errorlint // a leaf
	}
	return len(joined) > 0 && !slices.ContainsFunc(joined, func(err error) bool { return !onlyUnchanged(err) })
}

// keptPhase is the result of a call of a ported deployer: its error, which may be nil, and the request to keep the
// phase that it left.
type keptPhase struct{ err error }

func (k *keptPhase) Error() string { return fmt.Sprint(k.err) }
func (k *keptPhase) Unwrap() error { return k.err }

// splitKeptPhase returns the error of a call, and reports whether the phase must be kept.
func splitKeptPhase(err error) (rest error, keep bool) {
	if k, ok := errors.AsType[*keptPhase](err); ok {
		return k.err, true
	}
	return err, false
}

// statusWrittenError ends the run of a deployer that wrote the status of its item itself.
type statusWrittenError struct{ field string }

func (e *statusWrittenError) Error() string {
	return fmt.Sprintf("the deployer wrote %s of the deploy item with a client of its own: a ported deployer must change di.Status in memory "+
		"and leave the write to the library", e.field)
}

// LandscaperError returns the error as the item shows it.
func (e *statusWrittenError) LandscaperError() *lsv1alpha1.Error {
	codes := []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorInternalProblem}
	return &lsv1alpha1.Error{Operation: "CheckDeployItem", Reason: "StatusWritten", Message: e.Error(), Codes: codes}
}

// causeOf returns why a call was cancelled. A status that the deployer wrote itself may have looked like the end of the
// run.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if _, own := errors.AsType[*statusWrittenError](err); own && errors.Is(cause, ErrInterrupted) {
		return nil
	}
	return cause
}
