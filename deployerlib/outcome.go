// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"errors"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/patch"
)

// facts contains the input of the function `determineOutcome`, which does not change these values.
type facts struct {
	now, began    time.Time
	start         contract.StartInfo
	decision      contract.Decision
	abortDeadline time.Time // the time after which a failing Abort is not retried; zero for every other action

	read    *lsv1alpha1.DeployItem // the item as the attempt read it
	stored  *lsv1alpha1.DeployItem // the item as the API server stored it last
	working *lsv1alpha1.DeployItem // the item as hooks and the deployer changed it
	started bool                   // the start of the run is stored

	call        callResult
	cause       error             // why the attempt was cancelled
	err         error             // the error of a phase
	hookWait    *hookWait         // set if a hook returned WaitFor
	stopMessage string            // which hooks stopped a run that is due; empty if none did
	refusal     error             // the error with which the first outcome was refused
	refused     *contract.Outcome // the refused outcome of the run
}

// attemptOutcome describes the changes that an attempt makes to its item.
type attemptOutcome struct {
	decision contract.Decision
	run      *contract.Outcome // the outcome of the call or the run; nil if there was none
	called   bool              // a call was made
	replaces bool              // the outcome replaces one that was refused
	kind     outcomeKind
	err      error // the error of the attempt

	status   *lsv1alpha1.DeployItemStatus // the status to store; nil if it was not changed
	metadata statuswriter.MetadataPatch
	event    *lsv1alpha1.Error // the error for a Warning event
}

// outcomeKind determines how an outcome is handled.
type outcomeKind int

const (
	outcomeKindWrite       outcomeKind = iota // the outcome is written
	outcomeKindFailed                         // nothing is written, and the attempt failed
	outcomeKindSuperseded                     // nothing is written; the next attempt handles a newer version
	outcomeKindInterrupted                    // only provider status and export reference are kept
)

// isRequired reports whether the deployer would repeat its work if the outcome were lost.
func (o attemptOutcome) isRequired() bool {
	return o.run != nil && (o.run.Final || o.run.Done) && o.called
}

// determineOutcome returns the outcome of an attempt.
func determineOutcome(f facts) attemptOutcome {
	o := attemptOutcome{decision: f.decision, run: f.call.outcome, called: f.call.called, err: f.err}
	switch {
	case f.refusal != nil:
		return determineRefusedOutcome(f, o)
	case f.cause != nil:
		return determineCancelledOutcome(f, o)
	case errors.Is(f.err, ErrSuperseded):
		o.kind = outcomeKindSuperseded
		return o
	case statuswriter.IsWriteError(f.err) && statuswriter.ToResult(f.err).Kind == statuswriter.ResultUnconfirmed:
		o.kind = outcomeKindFailed
		return o
	}
	return determineEndOutcome(f, o)
}

// determineCancelledOutcome judges an attempt whose context was cancelled. The cause never becomes the error of the
// item.
func determineCancelledOutcome(f facts, o attemptOutcome) attemptOutcome {
	o.run, o.err, f.err = nil, nil, nil
	f.call.outcome = nil
	switch {
	case errors.Is(f.cause, ErrInterrupted):
		o.kind = outcomeKindInterrupted
		return o
	case errors.Is(f.cause, ErrDeadline) && !f.decision.Due:
		o.kind, o.err = outcomeKindFailed, errors.New("the hooks did not return in time")
		return o
	case errors.Is(f.cause, ErrDeadline) && f.decision.Action == contract.ActionAbort:
		o.run = newTimeoutOutcome(f, contract.NewAbortTimeoutError(getLastCause(f.stored), f.now))
	case errors.Is(f.cause, ErrDeadline):
		o.run = newTimeoutOutcome(f, newTimeoutError(f, getLastCause(f.stored)))
	}
	return determineEndOutcome(f, o)
}

// withRefusal returns the facts of an attempt whose outcome the API server refused. The argument stored is the item as
// it is stored now.
func (f facts) withRefusal(err error, refused *contract.Outcome, stored *lsv1alpha1.DeployItem) facts {
	f.refusal, f.refused, f.stored = err, refused, stored
	return f
}

// determineRefusedOutcome judges an attempt whose outcome the API server refused. The changes that the deployer and the
// hooks made to the status are dropped. If the attempt belongs to a run, the run ends with an error about the refusal.
func determineRefusedOutcome(f facts, o attemptOutcome) attemptOutcome {
	draft := f.copyStored()
	o.replaces = true
	if o.run = f.refused; o.run == nil {
		contract.SetHookError(draft, o.decision, f.refusal, f.now)
	} else {
		o.run = newTimeoutOutcome(f, newRefusedError(f))
		contract.ApplyOutcome(draft, o.decision, *o.run, f.now, f.began)
	}
	o.status, o.metadata = &draft.Status, o.newMetadataPatch(f.started)
	return o
}

// determineEndOutcome judges an attempt that ended with the outcome of a run, with the error of a phase, or with
// nothing to do.
func determineEndOutcome(f facts, o attemptOutcome) attemptOutcome {
	draft := f.getBase()
	switch {
	case f.hookWait != nil && f.decision.Due:
		o.run = determineHookWaitOutcome(f, o.run)
	case f.stopMessage != "":
		draft, o.run = determineStopOutcome(f, draft)
	case f.err != nil && !f.decision.Due:
		draft = copyStatus(draft)
		contract.SetHookError(draft, f.decision, f.err, f.now)
	case f.err != nil:
		o.run = determineErrorOutcome(f, o.run)
	case !f.decision.Due && !f.decision.Paused && (contract.HasHookError(draft, f.decision) || contract.StoppedByHookMessage(draft) != ""):
		draft = copyStatus(draft)
		contract.RemoveHookError(draft, f.decision)
		contract.RemoveStoppedByHook(draft)
	case o.run == nil && f.decision.Unchanged:
		draft = copyStatus(f.read)
		contract.FinishUnchanged(draft, f.decision, f.start)
	}
	switch {
	case o.run == nil || o.isDeletionDone():
	case f.isUnneeded(o.run, draft):
		draft = f.stored
	default:
		draft = copyStatus(draft)
		contract.ApplyOutcome(draft, f.decision, *o.run, f.now, f.began)
		if e := o.run.Err; e != nil && !f.isErrorShown(e) {
			o.event = e
		}
	}
	o.metadata = o.newMetadataPatch(f.started)
	if draft != f.read || f.working != f.read {
		o.status = &draft.Status
	}
	return o
}

// determineHookWaitOutcome judges the WaitFor of a hook during a run. The run continues, unless its deadline has
// passed.
func determineHookWaitOutcome(f facts, run *contract.Outcome) *contract.Outcome {
	if run == nil {
		if over := getOverdueOutcome(f, &lsv1alpha1.Error{Message: f.hookWait.message}); over != nil {
			return over
		}
	}
	judged := contract.DetermineOutcome(contract.CallResult{
		Revision: f.decision.Revision, Action: f.decision.Action, Deleting: f.read.DeletionTimestamp != nil,
		Phase: contract.InitialPhase(f.decision.Revision, f.decision.Action), Waiting: true, Message: f.hookWait.message, Now: f.now,
	})
	judged.Consumed = judged.Consumed && f.call.called // without a call, the operation has not taken effect
	return &judged
}

// determineStopOutcome judges the abort of a hook while a run is due. The run neither ends nor continues, unless its
// deadline has passed. The condition Waiting names the hook.
func determineStopOutcome(f facts, draft *lsv1alpha1.DeployItem) (*lsv1alpha1.DeployItem, *contract.Outcome) {
	if over := getOverdueOutcome(f, &lsv1alpha1.Error{Message: f.stopMessage}); over != nil {
		return draft, over
	}
	if contract.StoppedByHookMessage(draft) != f.stopMessage {
		draft = copyStatus(draft)
		contract.SetStoppedByHook(draft, f.stopMessage, f.now)
	}
	return draft, nil
}

// determineErrorOutcome judges the error of a phase of a run.
func determineErrorOutcome(f facts, run *contract.Outcome) *contract.Outcome {
	if run == nil {
		if over := getOverdueOutcome(f, contract.NewError(f.err, "", "", f.now)); over != nil {
			return over
		}
	}
	judged := contract.DetermineOutcome(contract.CallResult{
		Revision: f.decision.Revision, Action: f.decision.Action, Deleting: f.read.DeletionTimestamp != nil,
		Phase: contract.InitialPhase(f.decision.Revision, f.decision.Action), Err: f.err, Now: f.now,
	})
	return &judged
}

// getOutcomeWithoutCall returns the outcome of a run that does not need the deployer: a run that is past its deadline,
// or a deletion with nothing to uninstall. It returns nil if a call is needed.
func getOutcomeWithoutCall(f facts) *contract.Outcome {
	if over := getOverdueOutcome(f, getLastCause(f.read)); over != nil {
		return over
	}
	if d := f.decision; d.Action == contract.ActionDelete && (d.SkipUninstall || contract.WasNeverDeployed(f.read)) {
		return &contract.Outcome{Done: true}
	}
	return nil
}

// getOverdueOutcome returns the outcome of a run that is past its deadline, or nil if the run may continue. The
// function determineErrorOutcome calls overdue as well, so that a run whose hooks keep failing also ends at its
// deadline.
func getOverdueOutcome(f facts, cause *lsv1alpha1.Error) *contract.Outcome {
	switch d := f.decision; {
	case d.Action == contract.ActionAbort && d.Due && !f.abortDeadline.After(f.now):
		return newTimeoutOutcome(f, contract.NewAbortTimeoutError(cause, f.now))
	case d.Expired:
		return newTimeoutOutcome(f, newTimeoutError(f, cause))
	}
	return nil
}

// newTimeoutError returns the error of a run that is past its deadline.
func newTimeoutError(f facts, cause *lsv1alpha1.Error) *lsv1alpha1.Error {
	timeout, _, _ := contract.Timeout(f.read)
	return contract.NewTimeoutError(cause, timeout, f.now)
}

// newTimeoutOutcome returns the outcome of a run that the library ends without the deployer.
func newTimeoutOutcome(f facts, e *lsv1alpha1.Error) *contract.Outcome {
	o := contract.EndedByLibrary(f.decision.Revision, f.read.DeletionTimestamp != nil, e)
	return &o
}

// getLastCause returns an error with the reason why a run has not ended so far: a hook that stops the run, the last
// error of the item, or the message of its Waiting condition. It returns nil if the item has none of them.
func getLastCause(di *lsv1alpha1.DeployItem) *lsv1alpha1.Error {
	if stop := contract.StoppedByHookMessage(di); stop != "" { // is newer than the last error
		return &lsv1alpha1.Error{Message: stop}
	}
	if di.Status.LastError != nil {
		return di.Status.LastError
	}
	if waiting := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); waiting != nil {
		return &lsv1alpha1.Error{Message: waiting.Message}
	}
	return nil
}

// getBase returns the item on which the outcome is based. This is usually the item as hooks and the deployer changed
// it. If the start of the run could not be stored, base returns the stored item with this start, but without changes of
// user code. If a deletion needs no call, base returns the item as it was read, because no start is stored.
func (f facts) getBase() *lsv1alpha1.DeployItem {
	switch {
	case statuswriter.IsWriteError(f.err):
		return f.copyStored()
	case f.call.outcome != nil && f.call.outcome.Done && !f.call.called:
		return f.read
	}
	return f.working
}

// copyStored returns the stored item without changes of user code. If the start of a new run is not stored yet, afresh
// applies that start.
func (f facts) copyStored() *lsv1alpha1.DeployItem {
	draft := copyStatus(f.stored)
	if f.decision.New && !f.started {
		contract.StartRun(draft, f.decision, f.start)
	}
	return draft
}

// copyStatus returns a copy of an item. The status of the copy may be changed; the metadata and the spec are shared
// with di.
func copyStatus(di *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	draft := &lsv1alpha1.DeployItem{TypeMeta: di.TypeMeta, ObjectMeta: di.ObjectMeta, Spec: di.Spec}
	di.Status.DeepCopyInto(&draft.Status)
	return draft
}

// isUnneeded reports whether the outcome need not be stored. This is the case if a background run returned
// ErrUnchanged, contract.ConditionBackground is absent or shows success, and the status in memory does not differ from
// the stored status.
func (f facts) isUnneeded(run *contract.Outcome, draft *lsv1alpha1.DeployItem) bool {
	quiet := f.call.unchanged && f.decision.Background && run.Done && run.Err == nil
	return quiet && contract.HasBackgroundSucceeded(f.stored) && !statuswriter.WouldChange(f.stored, &draft.Status, f.decision.Revision)
}

// isErrorShown reports whether the item already shows the error e. If so, no further event is recorded for e.
func (f facts) isErrorShown(e *lsv1alpha1.Error) bool {
	return contract.IsErrorRecorded(f.stored, f.decision, e)
}

// newRefusedError returns the error for a status or patch that was refused.
func newRefusedError(f facts) *lsv1alpha1.Error {
	action := string(f.decision.Action)
	if statuswriter.IsPatchError(f.refusal) {
		return contract.NewError(statuswriter.ToStatusError(f.refusal), action, "PatchRefused", f.now)
	}
	reason := "StatusRefused"
	if patch.IsTooLarge(f.refusal) {
		reason = statuswriter.ReasonTooLarge
	}
	e := contract.NewError(f.refusal, action, reason, f.now)
	e.Codes = append(e.Codes, lsv1alpha1.ErrorConfigurationProblem)
	return e
}

// isEmpty reports whether the outcome changes nothing.
func (o attemptOutcome) isEmpty() bool {
	m := o.metadata
	return o.status == nil && !m.RemoveFinalizer && len(m.RemoveAnnotations) == 0
}

// isDeletionDone reports whether the outcome completes a deletion, so that the finalizer must be removed.
func (o attemptOutcome) isDeletionDone() bool {
	return o.decision.Action == contract.ActionDelete && o.run != nil && o.run.Done
}

// newMetadataPatch returns the changes of the finalizer and of the annotations that the outcome requires.
func (o attemptOutcome) newMetadataPatch(started bool) statuswriter.MetadataPatch {
	m := statuswriter.MetadataPatch{RemoveFinalizer: o.isDeletionDone()}
	if !started {
		m.RemoveAnnotations = o.decision.RemoveAnnotations
	}
	if o.run != nil && o.run.Consumed {
		m.RemoveAnnotations = slices.Concat(m.RemoveAnnotations, []string{lsv1alpha1.OperationAnnotation, contract.AbortTimestampAnnotation})
		slices.Sort(m.RemoveAnnotations)
		m.RemoveAnnotations = slices.Compact(m.RemoveAnnotations)
	}
	return m
}
