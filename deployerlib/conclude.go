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

// conclude judges an attempt and writes its outcome to the item.
func (r *reconciler) conclude(ctx context.Context, a *attempt, v verdict, err error) ending {
	e := a.ending()
	if !a.inflight.Seal() {
		return e
	}
	if v != drop {
		e.hooks = a.hooks.ReconcileResult
	}
	if !a.writable() {
		return r.concludeUnwritten(a, e, err)
	}
	cause := a.call.cause
	if cause == nil && (err != nil || a.call.outcome == nil) {
		cause = context.Cause(ctx)
	}
	if cause != nil {
		a.log.Info("the running call was cancelled", "cause", cause.Error())
	}
	f := r.lateFacts(a, cause, err)
	e.decision = f.decision
	o := judge(f)
	if a.pause != nil && cause == nil && (o.run == nil || !o.run.Final) {
		e.wait = r.pauseOf(a)
	}
	switch o.kind {
	case outcomeInterrupted:
		return r.keepProviderStatus(ctx, a, e)
	case outcomeSuperseded:
		a.session.MarkStale()
		return e.supersede()
	case outcomeFailed:
		return e.fail(o.err)
	case outcomeWrite:
	}
	return r.store(ctx, a, e, f, o)
}

// concludeUnwritten returns the end of an attempt that may not write to the item.
func (r *reconciler) concludeUnwritten(a *attempt, e ending, err error) ending {
	if a.pause != nil {
		e.wait = r.pauseOf(a)
	}
	if err != nil {
		return e.fail(err)
	}
	e.settled = e.wait == 0
	return e
}

// pauseOf returns the delay that a hook requested with WaitFor.
func (r *reconciler) pauseOf(a *attempt) time.Duration {
	return r.caller.limit.AtLeast(a.log, "WaitFor", a.pause.after)
}

// lateFacts collects the input of the function `judge` at the end of an attempt.
func (r *reconciler) lateFacts(a *attempt, cause, err error) facts {
	d, stopped := r.lateDecision(a, cause, err)
	if cause == nil && a.pause != nil && d.Due && !a.session.Started() {
		markNeverDeployed(a)
	}
	f := r.facts(a, d)
	f.cause, f.err = cause, shownError(err)
	if cause == nil {
		f.pause = a.pause
		if !d.Background {
			f.stopped = stopped
		}
	}
	return f
}

// lateDecision returns the decision of an attempt, and which hooks stopped a run that is due. If the attempt ended before
// the contract was evaluated, lateDecision evaluates it. After an abort, the run does not start: the decision only has
// an effect if a run is in progress, whose deadline may have passed.
func (r *reconciler) lateDecision(a *attempt, cause, err error) (d contract.Decision, stopped string) {
	if a.decision.Revision != "" {
		return a.decision, a.stopped
	}
	if cause == nil && (err != nil || a.pause != nil) {
		d = r.due(a.session.Working())
		r.prepare(a, d)
		return d, a.stopped
	}
	d = r.due(a.session.Read())
	switch {
	case d.Due && !d.New && !d.Background:
		d.Remove = nil
		return d, a.stopped
	case d.Due:
		return contract.Decision{Revision: d.Revision}, a.stopped
	}
	return contract.Decision{Revision: d.Revision}, ""
}

// facts collects the input of the function `judge`.
func (r *reconciler) facts(a *attempt, d contract.Decision) facts {
	f := facts{
		now: r.args.Clock.Now(), began: a.began, start: r.startInfo(a, d), decision: d,
		read: a.session.Read(), stored: a.session.Stored(), working: a.session.Working(), started: a.session.Started(), call: a.call,
	}
	if d.Action == contract.ActionAbort {
		f.abortDeadline = a.state.AbortDeadline(f.read, f.now)
	}
	return f
}

// store writes an outcome. If the write is refused, store judges the attempt once more and writes the new outcome.
func (r *reconciler) store(ctx context.Context, a *attempt, e ending, f facts, o outcome) ending {
	if statuswriter.IsWriteError(f.err) {
		a.session.DropUserChanges() // drops the changes of user code, because the refused start contained them
	}
	res := write(ctx, a, o)
	event := o.event
	if res.Kind == statuswriter.ResultRefused {
		a.session.DropUserChanges()
		f.refusal, f.refused, f.stored = res.Err, o.run, a.session.Stored()
		o = judge(f)
		res = a.session.Outcome(ctx, o.update(a.session.Working()))
	}
	if event != nil && (res.Err == nil || o.mustNotBeLost()) {
		r.warn(a.session.Stored(), event.Reason, event.Message)
	}
	return r.endStored(a, e, f, o, res)
}

// write stores an outcome if there is anything to store.
func write(ctx context.Context, a *attempt, o outcome) statuswriter.Result {
	if o.leavesItem() && !a.session.Changed() {
		return statuswriter.Result{}
	}
	return a.session.Outcome(ctx, o.update(a.session.Working()))
}

// update converts the outcome to an update for the session.
func (o outcome) update(working *lsv1alpha1.DeployItem) statuswriter.Update {
	return statuswriter.Update{Decision: o.decision, Replaces: o.replaces, Status: cmp.Or(o.status, &working.Status), Metadata: o.metadata, IsOutcome: o.run != nil, Keep: o.mustNotBeLost()}
}

// endStored returns the end of an attempt whose outcome was written.
func (r *reconciler) endStored(a *attempt, e ending, f facts, o outcome, w statuswriter.Result) ending {
	e.outcome, e.unchanged = o.run, f.call.unchanged
	switch {
	case w.Kind == statuswriter.ResultSuperseded:
		a.session.MarkStale()
		e = e.supersede()
		e.again = errors.Is(f.cause, ErrAborted)
		return e
	case w.Err != nil:
		return e.fail(w.Err)
	case f.cause != nil:
		o.err = nil
	case o.err == nil && o.run != nil && o.run.Err != nil && !o.run.Final:
		o.err = &phaseError{phase: string(o.decision.Action), err: errors.New(o.run.Err.Message)}
	}
	if o.err != nil || o.run != nil && o.run.Err != nil {
		hooks := e.hooks
		e = e.fail(o.err)
		if e.over = r.isOver(o); o.err == nil {
			e.hooks = hooks
		}
		return e
	}
	e.settled = e.wait == 0
	e.again = o.run != nil && o.run.Done && !o.run.Final && o.decision.Action == contract.ActionForceReconcile && !o.decision.Background
	if f.cause != nil {
		e.again = errors.Is(f.cause, ErrAborted)
	}
	return e
}

// isOver reports whether a failed attempt is not retried. This is the case if its run ended, or if a hook returned an
// unrecoverable error while no run was due. There are two exceptions, in which the hooks of the type ShouldReconcile are
// called once more after a run ended: after the error of a phase, because the time that the hooks requested is lost, and
// after a background run, because the deployer may have returned the triggers of the run. After an unrecoverable error of
// the deployer, however, a background run would fail again until the item changes. A run that only missed its deadline
// may succeed later.
func (r *reconciler) isOver(o outcome) bool {
	switch {
	case o.run != nil && o.run.Final && o.decision.Background:
		return !r.walker.has(extension.ShouldReconcileHook) || o.run.Err != nil && needsChange(o.run.Err.Codes)
	case o.run != nil && o.run.Final:
		return !r.walker.has(extension.ShouldReconcileHook) || o.err == nil
	case o.run == nil && !o.decision.Due:
		return contract.Unrecoverable(contract.Codes(o.err))
	}
	return false
}

// needsChange reports whether a run that ended with these codes cannot succeed before something is changed.
func needsChange(codes []lsv1alpha1.ErrorCode) bool {
	return contract.Unrecoverable(slices.DeleteFunc(slices.Clone(codes), func(c lsv1alpha1.ErrorCode) bool { return c == lsv1alpha1.ErrorTimeout }))
}

// keepProviderStatus ends an attempt whose job was ended by Landscaper during the call. It calls Abort, and stores the
// provider status and the export reference, so that the deployer can still find the objects that it deployed. It writes
// no other field.
func (r *reconciler) keepProviderStatus(ctx context.Context, a *attempt, e ending) ending {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if a.call.made && e.decision.Action != contract.ActionAbort {
		callCtx, end := r.telemetry.call(ctx, a.key, contract.ActionAbort)
		err := r.caller.contained(callCtx, a, r.args.Deployer.Abort, a.call.in)
		end(err)
		if err != nil {
			a.log.Error(err, "Abort failed after the job was interrupted")
		}
	}
	exists, err := a.session.KeepProviderStatus(ctx, e.decision)
	if err != nil && !errors.Is(err, ErrSuperseded) {
		return e.fail(err)
	}
	e.hooks, e.again = reconcile.Result{}, exists
	return e
}

// flush writes an outcome of an earlier attempt again, because the API server did not confirm the first write.
func flush(ctx context.Context, u itemstate.Unconfirmed) ending {
	w := statuswriter.ResultOf(u.Flush(ctx))
	e := ending{item: u.Stored(), responsible: true, decision: u.Decision()}
	if w.Err != nil && w.Kind != statuswriter.ResultSuperseded {
		return e.fail(w.Err)
	}
	e.again = true
	return e
}
