// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/extension"
)

// abortTimeout is the time limit for a call of Abort after Landscaper has ended the job.
const abortTimeout = 5 * time.Minute

// completeAttempt judges an attempt and writes its outcome to the item.
func (r *reconciler) completeAttempt(ctx context.Context, a *attempt, v verdict, err error) attemptEnd {
	if !a.inflight.Seal() {
		return a.newEnd(a.getDecision(), 0)
	}
	if !a.isWritable() {
		return r.completeUnwritten(a, v, err)
	}
	cause := a.call.cause
	if cause == nil && (err != nil || a.call.outcome == nil) {
		cause = context.Cause(ctx)
	}
	if cause != nil {
		a.log.Info("the running call was cancelled", "cause", cause.Error())
	}
	f := r.newFinalFacts(a, cause, err)
	o := determineOutcome(f)
	var hookDelay time.Duration
	if a.hooks.wait != nil && cause == nil && (o.run == nil || !o.run.Final) {
		hookDelay = r.getHookDelay(a)
	}
	e := a.newEnd(f.decision, hookDelay)
	switch o.kind {
	case outcomeKindInterrupted:
		return r.keepProviderStatus(ctx, a, e)
	case outcomeKindSuperseded:
		a.session.MarkStale()
		return e.withSuperseded()
	case outcomeKindFailed:
		return e.withError(o.err)
	case outcomeKindWrite:
	}
	return r.store(ctx, a, e, f, o)
}

// completeUnwritten returns the end of an attempt that may not write to the item.
func (r *reconciler) completeUnwritten(a *attempt, v verdict, err error) attemptEnd {
	var hookDelay time.Duration
	if a.hooks.wait != nil {
		hookDelay = r.getHookDelay(a)
	}
	e := a.newEnd(a.getDecision(), hookDelay)
	switch {
	case err != nil:
		return e.withError(err)
	case v == verdictDrop:
		e.hookRequeue = reconcile.Result{}
	}
	return e.withSuccess()
}

// getHookDelay returns the delay that a hook requested with WaitFor.
func (r *reconciler) getHookDelay(a *attempt) time.Duration {
	return r.caller.limit.Apply(a.log, "WaitFor", a.hooks.wait.after)
}

// newFinalFacts collects the input of the function `determineOutcome` at the end of an attempt.
func (r *reconciler) newFinalFacts(a *attempt, cause, err error) facts {
	d, stopped := r.getFinalDecision(a, cause, err)
	if cause == nil && a.hooks.wait != nil && d.Due && !a.session.IsStarted() {
		markNeverDeployed(a)
	}
	f := r.newFacts(a, d)
	f.cause, f.err = cause, getVisibleError(err)
	if cause == nil {
		f.hookWait = a.hooks.wait
		if !d.Background {
			f.stopMessage = stopped
		}
	}
	return f
}

// getFinalDecision returns the decision of an attempt, and which hooks stopped a run that is due. If the attempt ended
// before the contract was evaluated, getFinalDecision evaluates it. After an abort, the run does not start: the
// decision only has an effect if a run is in progress, whose deadline may have passed.
func (r *reconciler) getFinalDecision(a *attempt, cause, err error) (d contract.Decision, stopped string) {
	if a.evaluated != nil {
		return a.getDecision(), a.hooks.stopMessage
	}
	if cause == nil && (err != nil || a.hooks.wait != nil) {
		d = r.evaluateAttempt(a, a.session.GetWorkingCopy())
		r.prepare(a, d)
		return d, a.hooks.stopMessage
	}
	d = r.evaluateAttempt(a, a.session.GetOriginal())
	switch {
	case d.Due && !d.New && !d.Background:
		d.RemoveAnnotations = nil
		return d, a.hooks.stopMessage
	case d.Due:
		return a.getDecision(), a.hooks.stopMessage
	}
	return a.getDecision(), ""
}

// newFacts collects the input of the function `determineOutcome`.
func (r *reconciler) newFacts(a *attempt, d contract.Decision) facts {
	f := facts{
		now: r.args.Clock.Now(), began: a.began, start: r.startInfo(a, d), decision: d,
		read: a.session.GetOriginal(), stored: a.session.GetStored(), working: a.session.GetWorkingCopy(), started: a.session.IsStarted(), call: a.call,
	}
	if d.Action == contract.ActionAbort {
		f.abortDeadline = a.state.GetAbortDeadline(f.read, f.now)
	}
	return f
}

// store writes an outcome. If the write is refused, store writes the outcome of the attempt with this refusal instead.
func (r *reconciler) store(ctx context.Context, a *attempt, e attemptEnd, f facts, o attemptOutcome) attemptEnd {
	if statuswriter.IsWriteError(f.err) {
		a.session.DropUserChanges() // drops the changes of user code, because the refused start contained them
	}
	res := write(ctx, a, o)
	event := o.event
	if res.Kind == statuswriter.ResultRefused {
		a.session.DropUserChanges()
		o = determineOutcome(f.withRefusal(res.Err, o.run, a.session.GetStored()))
		res = a.session.StoreOutcome(ctx, o.toUpdate(a.session.GetWorkingCopy()))
	}
	if event != nil && (res.Err == nil || o.isRequired()) {
		r.warn(a.session.GetStored(), event.Reason, event.Message)
	}
	return r.completeWritten(a, e, f, o, res)
}

// write stores an outcome if there is anything to store.
func write(ctx context.Context, a *attempt, o attemptOutcome) statuswriter.Result {
	if o.isEmpty() && !a.session.HasChanges() {
		return statuswriter.Result{}
	}
	return a.session.StoreOutcome(ctx, o.toUpdate(a.session.GetWorkingCopy()))
}

// toUpdate converts the outcome to an update for the session.
func (o attemptOutcome) toUpdate(working *lsv1alpha1.DeployItem) statuswriter.Update {
	return statuswriter.Update{Decision: o.decision, Replaces: o.replaces, Status: cmp.Or(o.status, &working.Status), Metadata: o.metadata, IsOutcome: o.run != nil, Keep: o.isRequired()}
}

// completeWritten returns the end of an attempt whose outcome was written.
func (r *reconciler) completeWritten(a *attempt, e attemptEnd, f facts, o attemptOutcome, w statuswriter.Result) attemptEnd {
	e.outcome, e.unchanged = o.run, f.call.unchanged
	switch {
	case w.Kind == statuswriter.ResultSuperseded:
		a.session.MarkStale()
		e = e.withSuperseded()
		e.requeue = errors.Is(f.cause, ErrAborted)
		return e
	case w.Err != nil:
		return e.withError(w.Err)
	case f.cause != nil:
		o.err = nil
	case o.err == nil && o.run != nil && o.run.Err != nil && !o.run.Final:
		o.err = &phaseError{phase: string(o.decision.Action), err: errors.New(o.run.Err.Message)}
	}
	if o.err != nil || o.run != nil && o.run.Err != nil {
		hooks := e.hookRequeue
		e = e.withError(o.err)
		if e.noRetry = r.isNotRetried(o); o.err == nil {
			e.hookRequeue = hooks
		}
		return e
	}
	e = e.withSuccess()
	if f.cause != nil {
		e.requeue = errors.Is(f.cause, ErrAborted)
		return e
	}
	e.requeue = o.run != nil && o.run.Done && !o.run.Final && o.decision.Action == contract.ActionForceReconcile && !o.decision.Background
	return e
}

// isNotRetried reports whether a failed attempt is not retried. This is the case if its run ended, or if a hook
// returned an unrecoverable error while no run was due. There are two exceptions, in which the hooks of the type
// ShouldReconcile are called once more after a run ended: after the error of a phase, because the time that the hooks
// requested is lost, and after a background run, because the deployer may have returned the triggers of the run. After
// an unrecoverable error of the deployer, however, a background run would fail again until the item changes. A run that
// only missed its deadline may succeed later.
func (r *reconciler) isNotRetried(o attemptOutcome) bool {
	switch {
	case o.run != nil && o.run.Final && o.decision.Background:
		return !r.phaseRunner.hasHooks(extension.ShouldReconcileHook) || o.run.Err != nil && requiresChange(o.run.Err.Codes)
	case o.run != nil && o.run.Final:
		return !r.phaseRunner.hasHooks(extension.ShouldReconcileHook) || o.err == nil
	case o.run == nil && !o.decision.Due:
		return contract.HasUnrecoverableCode(contract.ErrorCodes(o.err))
	}
	return false
}

// requiresChange reports whether a run that ended with these codes cannot succeed before something is changed.
func requiresChange(codes []lsv1alpha1.ErrorCode) bool {
	return contract.HasUnrecoverableCode(slices.DeleteFunc(slices.Clone(codes), func(c lsv1alpha1.ErrorCode) bool { return c == lsv1alpha1.ErrorTimeout }))
}

// keepProviderStatus ends an attempt whose job was ended by Landscaper during the call. It calls Abort, and stores the
// provider status and the export reference, so that the deployer can still find the objects that it deployed. It writes
// no other field.
func (r *reconciler) keepProviderStatus(ctx context.Context, a *attempt, e attemptEnd) attemptEnd {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if a.call.called && e.decision.Action != contract.ActionAbort {
		callCtx, end := r.telemetry.observeCall(ctx, a.key, contract.ActionAbort)
		err := r.caller.runWithRecover(callCtx, a, r.args.Deployer.Abort, a.call.args)
		end(err)
		if err != nil {
			a.log.Error(err, "Abort failed after the job was interrupted")
		}
	}
	exists, err := a.session.KeepProviderStatus(ctx, e.decision)
	if err != nil && !errors.Is(err, ErrSuperseded) {
		return e.withError(err)
	}
	e.hookRequeue, e.requeue = reconcile.Result{}, exists
	return e
}

// flush writes an outcome of an earlier attempt again, because the API server did not confirm the first write.
func flush(ctx context.Context, u itemstate.Unconfirmed) attemptEnd {
	w := statuswriter.ToResult(u.Flush(ctx))
	e := attemptEnd{after: itemState{item: u.GetStored()}, responsible: true, decision: u.GetDecision()}
	if w.Err != nil && w.Kind != statuswriter.ResultSuperseded {
		return e.withError(w.Err)
	}
	e.requeue = true
	return e
}
