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

// facts contains the input of the function `judge`, which does not change these values.
type facts struct {
	now, began    time.Time
	start         contract.StartInfo
	decision      contract.Decision
	abortDeadline time.Time // the time after which a failing Abort is not retried; zero for every other action

	read    *lsv1alpha1.DeployItem // the item as the attempt read it
	stored  *lsv1alpha1.DeployItem // the item as the API server stored it last
	working *lsv1alpha1.DeployItem // the item as hooks and the deployer changed it
	started bool                   // the start of the run is stored

	call    callResult
	cause   error             // why the attempt was cancelled
	err     error             // the error of a phase
	pause   *pause            // set if a hook returned WaitFor
	stopped string            // which hooks stopped a run that is due; empty if none did
	refusal error             // the error with which the first outcome was refused
	refused *contract.Outcome // the refused outcome of the run
}

// outcome describes the changes that an attempt makes to its item.
type outcome struct {
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
	outcomeWrite       outcomeKind = iota // the outcome is written
	outcomeFailed                         // nothing is written, and the attempt failed
	outcomeSuperseded                     // nothing is written; the next attempt handles a newer version
	outcomeInterrupted                    // only provider status and export reference are kept
)

// mustNotBeLost reports whether the deployer would repeat its work if the outcome were lost.
func (o outcome) mustNotBeLost() bool {
	return o.run != nil && (o.run.Final || o.run.Done) && o.called
}

// judge returns the outcome of an attempt.
func judge(f facts) outcome {
	o := outcome{decision: f.decision, run: f.call.outcome, called: f.call.made, err: f.err}
	switch {
	case f.refusal != nil:
		return judgeRefusal(f, o)
	case f.cause != nil:
		return judgeCancelled(f, o)
	case errors.Is(f.err, ErrSuperseded):
		o.kind = outcomeSuperseded
		return o
	case statuswriter.IsWriteError(f.err) && statuswriter.ResultOf(f.err).Kind == statuswriter.ResultUnconfirmed:
		o.kind = outcomeFailed
		return o
	}
	return judgeEnd(f, o)
}

// judgeCancelled judges an attempt whose context was cancelled. The cause never becomes the error of the item.
func judgeCancelled(f facts, o outcome) outcome {
	o.run, o.err, f.err = nil, nil, nil
	f.call.outcome = nil
	switch {
	case errors.Is(f.cause, ErrInterrupted):
		o.kind = outcomeInterrupted
		return o
	case errors.Is(f.cause, ErrDeadline) && !f.decision.Due:
		o.kind, o.err = outcomeFailed, errors.New("the hooks did not return in time")
		return o
	case errors.Is(f.cause, ErrDeadline) && f.decision.Action == contract.ActionAbort:
		o.run = timedOut(f, contract.AbortTimeoutError(lastCause(f.stored), f.now))
	case errors.Is(f.cause, ErrDeadline):
		o.run = timedOut(f, timeoutError(f, lastCause(f.stored)))
	}
	return judgeEnd(f, o)
}

// judgeRefusal judges an attempt whose outcome the API server refused. The changes that the deployer and the hooks made
// to the status are dropped. If the attempt belongs to a run, the run ends with an error about the refusal.
func judgeRefusal(f facts, o outcome) outcome {
	draft := f.afresh()
	o.replaces = true
	if o.run = f.refused; o.run == nil {
		contract.HookFailed(draft, o.decision, f.refusal, f.now)
	} else {
		o.run = timedOut(f, refusedError(f))
		contract.Apply(draft, o.decision, *o.run, f.now, f.began)
	}
	o.status, o.metadata = &draft.Status, o.metadataPatch(f.started)
	return o
}

// judgeEnd judges an attempt that ended with the outcome of a run, with the error of a phase, or with nothing to do.
func judgeEnd(f facts, o outcome) outcome {
	draft := f.base()
	switch {
	case f.pause != nil && f.decision.Due:
		o.run = judgePause(f, o.run)
	case f.stopped != "":
		draft, o.run = judgeStop(f, draft)
	case f.err != nil && !f.decision.Due:
		draft = copyStatus(draft)
		contract.HookFailed(draft, f.decision, f.err, f.now)
	case f.err != nil:
		o.run = judgeError(f, o.run)
	case !f.decision.Due && !f.decision.Paused && (contract.ShowsHookFailure(draft, f.decision) || contract.HookStop(draft) != ""):
		draft = copyStatus(draft)
		contract.HookRecovered(draft, f.decision)
		contract.HookStopEnded(draft)
	case o.run == nil && f.decision.Unchanged:
		draft = copyStatus(f.read)
		contract.FinishUnchanged(draft, f.decision, f.start)
	}
	switch {
	case o.run == nil || o.deletes():
	case f.leavesNothing(o.run, draft):
		draft = f.stored
	default:
		draft = copyStatus(draft)
		contract.Apply(draft, f.decision, *o.run, f.now, f.began)
		if e := o.run.Err; e != nil && !f.knows(e) {
			o.event = e
		}
	}
	o.metadata = o.metadataPatch(f.started)
	if draft != f.read || f.working != f.read {
		o.status = &draft.Status
	}
	return o
}

// judgePause judges the WaitFor of a hook during a run. The run continues, unless its deadline has passed.
func judgePause(f facts, run *contract.Outcome) *contract.Outcome {
	if run == nil {
		if over := overdue(f, &lsv1alpha1.Error{Message: f.pause.message}); over != nil {
			return over
		}
	}
	judged := contract.Judge(contract.CallResult{
		Revision: f.decision.Revision, Action: f.decision.Action, Deleting: f.read.DeletionTimestamp != nil,
		Phase: contract.InitialPhase(f.decision.Revision, f.decision.Action), Waiting: true, Message: f.pause.message, Now: f.now,
	})
	judged.Consumed = judged.Consumed && f.call.made // without a call, the operation has not taken effect
	return &judged
}

// judgeStop judges the abort of a hook while a run is due. The run neither ends nor continues, unless its deadline has
// passed. The condition Waiting names the hook.
func judgeStop(f facts, draft *lsv1alpha1.DeployItem) (*lsv1alpha1.DeployItem, *contract.Outcome) {
	if over := overdue(f, &lsv1alpha1.Error{Message: f.stopped}); over != nil {
		return draft, over
	}
	if contract.HookStop(draft) != f.stopped {
		draft = copyStatus(draft)
		contract.HookStopped(draft, f.stopped, f.now)
	}
	return draft, nil
}

// judgeError judges the error of a phase of a run.
func judgeError(f facts, run *contract.Outcome) *contract.Outcome {
	if run == nil {
		if over := overdue(f, contract.NewError(f.err, "", "", f.now)); over != nil {
			return over
		}
	}
	judged := contract.Judge(contract.CallResult{
		Revision: f.decision.Revision, Action: f.decision.Action, Deleting: f.read.DeletionTimestamp != nil,
		Phase: contract.InitialPhase(f.decision.Revision, f.decision.Action), Err: f.err, Now: f.now,
	})
	return &judged
}

// withoutCall returns the outcome of a run that does not need the deployer: a run that is past its deadline, or a
// deletion with nothing to uninstall. It returns nil if a call is needed.
func withoutCall(f facts) *contract.Outcome {
	if over := overdue(f, lastCause(f.read)); over != nil {
		return over
	}
	if d := f.decision; d.Action == contract.ActionDelete && (d.SkipUninstall || contract.NeverDeployed(f.read)) {
		return &contract.Outcome{Done: true}
	}
	return nil
}

// overdue returns the outcome of a run that is past its deadline, or nil if the run may continue. The function
// judgeError calls overdue as well, so that a run whose hooks keep failing also ends at its deadline.
func overdue(f facts, cause *lsv1alpha1.Error) *contract.Outcome {
	switch d := f.decision; {
	case d.Action == contract.ActionAbort && d.Due && !f.abortDeadline.After(f.now):
		return timedOut(f, contract.AbortTimeoutError(cause, f.now))
	case d.Expired:
		return timedOut(f, timeoutError(f, cause))
	}
	return nil
}

// timeoutError returns the error of a run that is past its deadline.
func timeoutError(f facts, cause *lsv1alpha1.Error) *lsv1alpha1.Error {
	timeout, _, _ := contract.Timeout(f.read)
	return contract.TimeoutError(cause, timeout, f.now)
}

// timedOut returns the outcome of a run that the library ends without the deployer.
func timedOut(f facts, e *lsv1alpha1.Error) *contract.Outcome {
	o := contract.EndedByLibrary(f.decision.Revision, f.read.DeletionTimestamp != nil, e)
	return &o
}

// lastCause returns an error with the reason why a run has not ended so far: a hook that stops the run, the last error of
// the item, or the message of its Waiting condition. It returns nil if the item has none of them.
func lastCause(di *lsv1alpha1.DeployItem) *lsv1alpha1.Error {
	if stop := contract.HookStop(di); stop != "" { // is newer than the last error
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

// base returns the item on which the outcome is based. This is usually the item as hooks and the deployer changed it.
// If the start of the run could not be stored, base returns the stored item with this start, but without changes of
// user code. If a deletion needs no call, base returns the item as it was read, because no start is stored.
func (f facts) base() *lsv1alpha1.DeployItem {
	switch {
	case statuswriter.IsWriteError(f.err):
		return f.afresh()
	case f.call.outcome != nil && f.call.outcome.Done && !f.call.made:
		return f.read
	}
	return f.working
}

// afresh returns the stored item without changes of user code. If the start of a new run is not stored yet, afresh
// applies that start.
func (f facts) afresh() *lsv1alpha1.DeployItem {
	draft := copyStatus(f.stored)
	if f.decision.New && !f.started {
		contract.Start(draft, f.decision, f.start)
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

// leavesNothing reports whether the outcome need not be stored. This is the case if a background run returned
// ErrUnchanged, contract.ConditionBackground is absent or shows success, and the status in memory does not differ from
// the stored status.
func (f facts) leavesNothing(run *contract.Outcome, draft *lsv1alpha1.DeployItem) bool {
	quiet := f.call.unchanged && f.decision.Background && run.Done && run.Err == nil
	return quiet && contract.BackgroundShowsSuccess(f.stored) && !statuswriter.Changes(f.stored, &draft.Status, f.decision.Revision)
}

// knows reports whether the item already shows the error e. If so, no further event is recorded for e.
func (f facts) knows(e *lsv1alpha1.Error) bool {
	return contract.ShowsError(f.stored, f.decision, e)
}

// refusedError returns the error for a status or patch that was refused.
func refusedError(f facts) *lsv1alpha1.Error {
	action := string(f.decision.Action)
	if statuswriter.IsPatchError(f.refusal) {
		return contract.NewError(statuswriter.RefusedPatch(f.refusal), action, "PatchRefused", f.now)
	}
	reason := "StatusRefused"
	if patch.Permanent(f.refusal) {
		reason = statuswriter.ReasonTooLarge
	}
	e := contract.NewError(f.refusal, action, reason, f.now)
	e.Codes = append(e.Codes, lsv1alpha1.ErrorConfigurationProblem)
	return e
}

// leavesItem reports whether the outcome changes nothing.
func (o outcome) leavesItem() bool {
	m := o.metadata
	return o.status == nil && !m.RemoveFinalizer && len(m.RemoveAnnotations) == 0
}

// deletes reports whether the outcome completes a deletion, so that the finalizer must be removed.
func (o outcome) deletes() bool {
	return o.decision.Action == contract.ActionDelete && o.run != nil && o.run.Done
}

// metadataPatch returns the changes of the finalizer and of the annotations that the outcome requires.
func (o outcome) metadataPatch(started bool) statuswriter.MetadataPatch {
	m := statuswriter.MetadataPatch{RemoveFinalizer: o.deletes()}
	if !started {
		m.RemoveAnnotations = o.decision.Remove
	}
	if o.run != nil && o.run.Consumed {
		m.RemoveAnnotations = slices.Concat(m.RemoveAnnotations, []string{lsv1alpha1.OperationAnnotation, contract.AbortTimestampAnnotation})
		slices.Sort(m.RemoveAnnotations)
		m.RemoveAnnotations = slices.Compact(m.RemoveAnnotations)
	}
	return m
}
