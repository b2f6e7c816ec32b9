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

// result describes how an attempt ended. The time of the next attempt depends on these values.
type result struct {
	hooks   reconcile.Result // the requeue that hooks requested; empty after an error
	err     error            // the error of the attempt; WaitFor is not an error
	failure bool             // the attempt counts as a failure for the backoff
	over    bool             // the failure is not retried: a change of the item, a hook or a trigger leads to the next attempt
	again   bool             // reconcile again immediately
	settled bool             // the attempt succeeded, or there was nothing to do

	outcome    *contract.Outcome // the outcome of the call or the run; nil if there was none
	unchanged  bool              // the call returned ErrUnchanged
	superseded bool              // the item changed; the event of the newer version follows
}

// conclude judges an attempt and writes its outcome to the item.
func (r *reconciler) conclude(ctx context.Context, a *attempt, v verdict, err error) result {
	if !a.inflight.Seal() {
		return result{}
	}
	if !a.writable() {
		if a.pause != nil {
			a.wait = r.caller.limit.AtLeast(a.log, "WaitFor", a.pause.after)
		}
		return plainResult(a, v, err)
	}
	cause := a.call.cause
	if cause == nil && (err != nil || a.call.outcome == nil) {
		cause = context.Cause(ctx)
	}
	if cause != nil {
		a.log.Info("the running call was cancelled", "cause", cause.Error())
	}
	f := r.lateFacts(ctx, a, cause, err)
	o := judge(f)
	if a.pause != nil && cause == nil && (o.run == nil || !o.run.Final) {
		a.wait = r.caller.limit.AtLeast(a.log, "WaitFor", a.pause.after)
	}
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

// lateFacts collects the input of the function `judge` at the end of an attempt. If a hook ended the attempt before the
// contract was evaluated, lateFacts evaluates the contract. After an abort, the run does not start.
func (r *reconciler) lateFacts(ctx context.Context, a *attempt, cause, err error) facts {
	stopped := a.stopped
	if a.decision.Revision == "" {
		switch due := r.due(a.session.Read()); {
		case cause == nil && (err != nil || a.pause != nil):
			_, _ = r.evaluate(ctx, a)
		case due.Due && !due.New && !due.Background: // the deadline of a run in progress has an effect despite the abort
			due.Remove = nil
			a.decision = due
		default:
			a.decision.Revision = due.Revision
			if !due.Due {
				stopped = ""
			}
		}
	}
	if cause == nil && a.pause != nil && a.decision.Due && !a.session.Started() {
		markNeverDeployed(a)
	}
	f := r.facts(a)
	f.cause, f.err = cause, shownError(err)
	if cause == nil {
		f.pause = a.pause
		if !f.decision.Background {
			f.stopped = stopped
		}
	}
	return f
}

// facts collects the input of the function `judge`.
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

// store writes an outcome. If the write is refused, store judges the attempt once more and writes the new outcome.
func (r *reconciler) store(ctx context.Context, a *attempt, f facts, o outcome, v verdict) result {
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
	return r.resultOf(a, f, o, res, v)
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
	plain := plainResult(a, v, nil)
	if o.err != nil || o.run != nil && o.run.Err != nil {
		res.err, res.failure, res.over = o.err, true, r.isOver(o)
		if o.err == nil {
			res.hooks = plain.hooks
		}
		return res
	}
	res.hooks, res.settled = plain.hooks, plain.settled
	res.again = o.run != nil && o.run.Done && !o.run.Final && o.decision.Action == contract.ActionForceReconcile && !o.decision.Background
	if f.cause != nil {
		res.again = errors.Is(f.cause, ErrAborted)
	}
	return res
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

// plainResult returns a result without an outcome. The result contains the parameter `err` or, if err is nil, the
// requeue that hooks requested.
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

// keepProviderStatus ends an attempt whose job was ended by Landscaper during the call. It calls Abort, and stores the
// provider status and the export reference, so that the deployer can still find the objects that it deployed. It writes
// no other field.
func (r *reconciler) keepProviderStatus(ctx context.Context, a *attempt) result {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if a.call.made && a.decision.Action != contract.ActionAbort {
		callCtx, end := r.telemetry.call(ctx, a.key, contract.ActionAbort)
		err := r.caller.contained(callCtx, a, r.args.Deployer.Abort, a.call.in)
		end(err)
		if err != nil {
			a.log.Error(err, "Abort failed after the job was interrupted")
		}
	}
	exists, err := a.session.KeepProviderStatus(ctx, a.decision)
	if err != nil && !errors.Is(err, ErrSuperseded) {
		return result{err: err, failure: true}
	}
	return result{again: exists}
}

// flush writes an outcome of an earlier attempt again, because the API server did not confirm the first write.
func flush(ctx context.Context, u itemstate.Unconfirmed) result {
	if w := statuswriter.ResultOf(u.Flush(ctx)); w.Err != nil && w.Kind != statuswriter.ResultSuperseded {
		return result{err: w.Err, failure: true}
	}
	return result{again: true}
}
