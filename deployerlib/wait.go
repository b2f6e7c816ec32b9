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

// waitFallback is how long an item waits at most when only a trigger should wake it.
const waitFallback = time.Minute

// waitError is what WaitFor returns.
type waitError struct {
	reason string
	after  time.Duration
}

// Error tells what is waited for.
func (w *waitError) Error() string { return "waiting for " + w.reason }

// WaitFor tells the library that the action is not done yet and has not
// failed: return it as the error of Reconcile, Delete or ForceReconcile. The
// item stays in phase Progressing (Deleting), reason is shown in its Waiting
// condition, lastError is cleared, and the action is called again after the
// given time, sooner when a hook or Runtime.Trigger asks. Zero or less: a
// trigger alone should wake it; a minute is the fallback. Joined with another
// error, the other error counts.
func WaitFor(reason string, after time.Duration) error {
	return &waitError{reason: reason, after: after}
}

// AsWait reports whether err is nothing but a WaitFor, or several, and what is
// waited for: the reason and delay of the one that ends first.
func AsWait(err error) (reason string, after time.Duration, ok bool) {
	w, ok := waitOf(err)
	if !ok {
		return "", 0, false
	}
	return w.reason, w.delay(), true
}

// delay is how long to wait before the next call.
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

// waitOfAll returns the shortest of the waits when all errs are waits.
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

// ErrSuperseded is returned by Checkpoint when the job is no longer ours: it
// was interrupted, or another job began. The deployer should return.
var ErrSuperseded = statuswriter.ErrSuperseded

// Causes with which the library cancels the context of a running call.
var (
	// ErrAborted: the item carries the abort operation. Abort runs after the call returned.
	ErrAborted = itemstate.ErrAborted
	// ErrInterrupted: Landscaper ended the job while the call ran.
	ErrInterrupted = itemstate.ErrInterrupted
	// ErrDeadline: the item's timeout passed.
	ErrDeadline = itemstate.ErrDeadline
	// ErrShutdown: the process ends and its grace period is over.
	ErrShutdown = errors.New("the deployer shuts down")
)

// PanicError is the error that a panic in a deployer becomes.
type PanicError struct {
	// Value is what was panicked with.
	Value any
	// Stack is the goroutine's stack, for the log only.
	Stack []byte
}

// Error names the value, without the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// ErrUnchanged is returned by Reconcile or ForceReconcile when everything was
// found as it should be and there is nothing to tell. It counts as success. A
// background run of a finished job-ID item that ends with it writes nothing at
// all, not even lastReconcileTime; so a run that a schedule asked for must
// return nil, for the schedule counts from that time. Something is written all
// the same when there is something to say: the status was changed in memory, a
// patch was noted, condition BackgroundReconcile shows anything but success, or
// the annotation force-reconcile has to go.
//
// In a job, and under the annotation revision, it counts as nil. Joined with
// another error, or with WaitFor, the other one counts. Delete and Abort must
// not return it: from them it is an error like any other.
var ErrUnchanged = errors.New("nothing has changed")

// isUnchanged reports whether an action returned ErrUnchanged and nothing else.
func isUnchanged(action contract.Action, err error) bool {
	return (action == contract.ActionReconcile || action == contract.ActionForceReconcile) && onlyUnchanged(err)
}

// onlyUnchanged reports whether all errors at the bottom of err are ErrUnchanged.
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

// keptPhase is what a call of a ported deployer came to: its error, which may be nil, and the request to keep the phase that
// it left.
type keptPhase struct{ err error }

func (k *keptPhase) Error() string { return fmt.Sprint(k.err) }
func (k *keptPhase) Unwrap() error { return k.err }

// splitKeptPhase returns the error of a call, and reports whether the phase is to be kept.
func splitKeptPhase(err error) (rest error, keep bool) {
	if k, ok := errors.AsType[*keptPhase](err); ok {
		return k.err, true
	}
	return err, false
}

// statusWrittenError ends the run of a deployer that wrote the status of its item.
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

// causeOf returns why a call was cancelled. What the deployer wrote itself may have looked like the end of the run.
func causeOf(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if _, own := errors.AsType[*statusWrittenError](err); own && errors.Is(cause, ErrInterrupted) {
		return nil
	}
	return cause
}
