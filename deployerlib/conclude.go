// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"cmp"
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/extension"
)

// abortTimeout limits Abort after an interrupt.
const abortTimeout = 5 * time.Minute

// result is the part of an attempt's result that the next attempt depends on.
type result struct {
	hooks   reconcile.Result // the reconcile that hooks requested; empty after an error
	err     error            // the error; nil for a wait
	failure bool             // counts for the backoff
	again   bool             // reconcile again immediately
	settled bool             // success, or nothing to do

	outcome    *contract.Outcome // of the call or the run; nil if there was none
	unchanged  bool              // a background run left nothing to write
	superseded bool              // the item changed; the event of the newer version follows
}

// conclude judges an attempt and writes its outcome. Only here does the outcome of a run reach the item.
func (r *reconciler) conclude(ctx context.Context, a *attempt, v verdict, err error) result {
	if !a.inflight.Seal() {
		return result{}
	}
	if !a.writable() {
		return plainResult(a, v, err)
	}
	cause := a.call.cause
	if cause == nil && (err != nil || a.call.outcome == nil) {
		cause = context.Cause(ctx)
	}
	if cause != nil {
		a.log.Info("the running call was cancelled", "cause", cause.Error())
	} else if err != nil && a.decision.Revision == "" { // a hook failed before the contract was evaluated
		_, _ = r.evaluate(ctx, a)
	}
	if a.decision.Revision == "" { // a hook ended the attempt before the contract was evaluated; its rules apply nevertheless
		a.decision.Revision = r.due(a.session.Read()).Revision
	}
	f := r.facts(a)
	f.cause, f.err = cause, err
	o := judge(f)
	switch o.kind {
	case outcomeInterrupted:
		return r.keepProviderStatus(ctx, a)
	case outcomeSuperseded:
		a.session.NoteForeign()
		return result{superseded: true}
	case outcomeFailed:
		return result{err: o.err, failure: true}
	case outcomeWrite:
	}
	return r.store(ctx, a, f, o, v)
}

// facts collects the arguments of judge.
func (r *reconciler) facts(a *attempt) facts {
	f := facts{
		now: r.args.Clock.Now(), began: a.began, start: r.startInfo(a), decision: a.decision,
		read: a.session.Read(), stored: a.session.Stored(), working: a.session.Working(), started: a.session.Started(), call: a.call,
	}
	if a.decision.Action == contract.ActionAbort {
		f.abortDeadline = a.state.AbortDeadline(f.read, f.now)
	}
	return f
}

// store writes an outcome. If the write is refused, it judges once more.
func (r *reconciler) store(ctx context.Context, a *attempt, f facts, o outcome, v verdict) result {
	if statuswriter.IsWriteError(f.err) {
		a.session.DropUserChanges() // the start was refused with them
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
	return r.resultOf(a, f, o, res, v)
}

// write writes an outcome, unless nothing changed.
func write(ctx context.Context, a *attempt, o outcome) statuswriter.Result {
	if o.leavesItem() && !a.session.Changed() {
		return statuswriter.Result{}
	}
	return a.session.Outcome(ctx, o.update(a.session.Working()))
}

// update returns the outcome in the form in which it is written.
func (o outcome) update(working *lsv1alpha1.DeployItem) statuswriter.Update {
	return statuswriter.Update{Decision: o.decision, Replaces: o.replaces, Status: cmp.Or(o.status, &working.Status), Metadata: o.metadata, IsOutcome: o.run != nil, Keep: o.mustNotBeLost()}
}

// resultOf returns the result of an attempt whose outcome was written.
func (r *reconciler) resultOf(a *attempt, f facts, o outcome, w statuswriter.Result, v verdict) result {
	res := result{outcome: o.run, unchanged: f.call.unchanged}
	switch {
	case w.Kind == statuswriter.ResultSuperseded:
		a.session.NoteForeign()
		res.superseded, res.again = true, errors.Is(f.cause, ErrAborted)
		return res
	case w.Err != nil:
		res.err, res.failure = w.Err, true
		return res
	case f.cause != nil:
		o.err = nil
	case o.err == nil && o.run != nil && o.run.Err != nil && !o.run.Final:
		o.err = &phaseError{phase: string(o.decision.Action), err: errors.New(o.run.Err.Message)}
	}
	background := o.decision.Background
	if o.err != nil {
		final := o.run != nil && o.run.Final && !background
		res.err, res.failure, res.again = o.err, !final, final && r.walker.has(extension.ShouldReconcileHook)
		return res
	}
	plain := plainResult(a, v, nil)
	res.hooks, res.settled = plain.hooks, plain.settled
	res.again = o.run != nil && o.run.Done && !o.run.Final && o.decision.Action == contract.ActionForceReconcile && !background
	res.failure = background && o.run != nil && o.run.Err != nil && !o.run.Final
	if f.cause != nil {
		res.again = errors.Is(f.cause, ErrAborted)
	}
	return res
}

// plainResult returns the result of an attempt that wrote nothing: the requeue of the hooks, or the error.
func plainResult(a *attempt, v verdict, err error) result {
	if err != nil {
		return result{err: err, failure: true}
	}
	res := result{settled: a.wait == 0 && a.call.wait == 0}
	if v != drop {
		res.hooks = a.hooks.ReconcileResult
	}
	return res
}

// keepProviderStatus calls Abort after Landscaper ended the job of a call, and stores what the deployer knows about the
// target. It writes nothing else.
func (r *reconciler) keepProviderStatus(ctx context.Context, a *attempt) result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if a.call.made && a.decision.Action != contract.ActionAbort {
		callCtx, end := r.telemetry.call(ctx, a.key, contract.ActionAbort)
		err := r.caller.contained(callCtx, a, r.args.Deployer.Abort, a.call.in)
		end(err)
		if err != nil {
			a.log.Error(err, "abort after an interrupt failed")
		}
	}
	exists, err := a.session.KeepProviderStatus(ctx, a.decision)
	if err != nil && !errors.Is(err, ErrSuperseded) {
		return result{err: err, failure: true}
	}
	return result{again: exists}
}

// flush writes the outcome of an earlier attempt that the API server did not confirm.
func flush(ctx context.Context, u itemstate.Unconfirmed) result {
	if w := statuswriter.ResultOf(u.Flush(ctx)); w.Err != nil && w.Kind != statuswriter.ResultSuperseded {
		return result{err: w.Err, failure: true}
	}
	return result{again: true}
}
