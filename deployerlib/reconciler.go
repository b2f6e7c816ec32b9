// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/shares"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
	"github.com/deployerkit/deployerkit/history"
)

// reconciler reconciles the items of one deployer. It evaluates what is due, loads the arguments, calls the deployer,
// judges the result, writes the outcome, and schedules the next attempt.
type reconciler struct {
	args      DeployerArgs
	phases    []phase
	items     itemReader
	tracker   *itemstate.Tracker
	shares    *shares.Shares
	events    *dispatcher
	walker    *walker
	loader    *loader
	caller    *caller
	writer    *statuswriter.Writer
	watchdog  *watchdog
	telemetry *telemetry
	warn      func(di *lsv1alpha1.DeployItem, reason, message string)
}

// Reconcile makes one attempt on an item, unless it is too early for an attempt, and returns when to reconcile the item
// again. It never returns an error, because the reconciler computes the backoff of each item itself and combines the
// backoff with the deadline of the run.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	state := r.tracker.Get(req.NamespacedName)
	di, err := r.items.get(ctx, req.NamespacedName)
	if err != nil {
		di = nil
	}
	if di != nil {
		decision := r.due(di)
		if rest := state.Wait(di, decision.Due && !decision.Background, r.args.Clock.Now()); rest > 0 {
			r.shares.Return(req.NamespacedName)
			claim, _ := r.claim(req.NamespacedName, di)
			return reconcile.Result{RequeueAfter: rest, Priority: &claim.Priority}, nil
		}
	}
	if claim, wait := r.claim(req.NamespacedName, di); !r.shares.Take(req.NamespacedName, claim) {
		return reconcile.Result{RequeueAfter: wait, Priority: &claim.Priority}, nil // or earlier, if the item gets a share
	}
	defer r.shares.Return(req.NamespacedName)
	a, attemptCtx, cancel := r.newAttempt(ctx, req.NamespacedName, state)
	defer cancel(nil)
	if a == nil {
		return reconcile.Result{}, nil
	}
	attemptCtx = r.telemetry.record(attemptCtx, a)
	done := make(chan ending, 1)
	r.args.CountCalls(+1)
	go func() {
		e := r.run(attemptCtx, a)
		r.args.CountCalls(-1)
		done <- e
	}()
	e, returned := r.watchdog.watch(ctx, attemptCtx, a, done)
	if !returned {
		a.record.End(history.End{Now: r.args.Clock.Now(), Result: "abandoned"})
		return reconcile.Result{}, nil
	}
	return r.schedule(a, e), nil
}

// claim returns the item's request for a share of the workers, and how long the item may wait for the share. The item
// may wait until the deadline of its run; after that, the run ends without a call. If the result `wait` is zero, the
// item may wait without limit.
func (r *reconciler) claim(key types.NamespacedName, di *lsv1alpha1.DeployItem) (claim shares.Claim, wait time.Duration) {
	claim.Place.Namespace = key.Namespace
	if di == nil {
		return claim, 0
	}
	now := r.args.Clock.Now()
	decision := r.due(di)
	if claim.Priority = priorityOf(di); claim.Priority == priorityJob && (!decision.Due || decision.Background) {
		claim.Priority = priorityPeriodic
	}
	if di.Spec.Target != nil && !decision.Expired {
		claim.Place.Target = di.Spec.Target.Name
	}
	if deadline, ok := contract.Deadline(di, decision); ok && decision.Due && deadline.After(now) {
		wait = deadline.Sub(now)
	}
	return claim, wait
}

// run runs the pipeline once and recovers from panics.
func (r *reconciler) run(ctx context.Context, a *attempt) (e ending) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error(&PanicError{Value: v}, "reconcile panicked", "stack", string(debug.Stack()))
			r.telemetry.panicked()
			e = r.complete(a, a.ending().fail(&PanicError{Value: v}))
		}
	}()
	if u := a.state.TakeUnconfirmed(); u != nil {
		return flush(ctx, u)
	}
	ctx, end := r.telemetry.attempt(ctx, a.key)
	a.inflight.Limit(contract.DefaultTimeout)
	v, err := r.walker.walk(ctx, a, r.phases)
	a.inflight.Unlimit()
	e = r.resume(ctx, a, r.conclude(ctx, a, v, err))
	end(e)
	return r.complete(a, e)
}

// resume calls the method Resume of the deployer if no run of the item is due. It does so once per item after the start
// of the process.
func (r *reconciler) resume(ctx context.Context, a *attempt, e ending) ending {
	resumer, ok := optional[Resumer](r.args.Deployer)
	if !ok || !e.settled || !a.writable() || e.decision.Due || e.decision.Held || a.state.Resumed() || a.session.Read().DeletionTimestamp != nil {
		return e
	}
	resolved, err := r.loader.resolve(ctx, a)
	if err == nil {
		err = r.caller.contained(ctx, a, func(ctx context.Context, _ *lsv1alpha1.Context, _ *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
			return resumer.Resume(ctx, a.session.Read().DeepCopy(), target)
		}, inputs{target: resolved})
	}
	if err != nil {
		return ending{decision: e.decision, responsible: e.responsible, wait: e.wait}.fail(fmt.Errorf("resume: %w", err))
	}
	a.state.MarkResumed()
	return e
}

// complete adds the state of the item and of its run after the attempt.
func (r *reconciler) complete(a *attempt, e ending) ending {
	if a.session == nil {
		return e
	}
	now := r.args.Clock.Now()
	e.item, e.known = a.session.Stored(), !a.session.IsStale()
	if e.endedRun() {
		e.due = r.due(e.item)
	}
	if e.decision.Action == contract.ActionAbort {
		e.abortDeadline = a.state.AbortDeadline(a.session.Read(), now)
	}
	e.targetGrace, e.waitsTarget = r.loader.targetGrace(a, e.decision, e.item)
	if a.call.made {
		e.rest = max(a.state.CountCall(a.began, r.args.MinInterval, e.decision.Background).Sub(now), 0)
	} else if e.decision.Background && e.decision.Expired {
		e.backoff = max(a.inflight.Earliest().Sub(now), 0)
	}
	return e
}

// schedule records how an attempt ended and returns when to reconcile again.
func (r *reconciler) schedule(a *attempt, e ending) reconcile.Result {
	now := r.args.Clock.Now()
	report(a, e, now)
	if e.failure && !e.over {
		r.telemetry.retry(e.decision.Action)
	}
	retries := a.state.Count(itemstate.End{Failed: e.failure && !e.immediate() && e.backoff == 0, Settled: e.settled, Immediate: e.immediate() || e.soon()})
	backoff := func(failures int) time.Duration { return r.args.Backoff.after(failures, withJitter) }
	if e.tooSoon(retries) {
		r.caller.limit.AtLeast(a.log, "RequeueAfter of a hook", e.hooks.RequeueAfter)
	}
	n := schedule(e, retries, backoff, now)
	r.telemetry.recorded(a, e, n, now)
	if e.decision.Background && !e.failure { // the change may resolve a failure
		n.rest = e.rest
	}
	pace := n.pace(now)
	if e.item == nil {
		a.inflight.EndUnread(pace.Earliest)
		return n.result()
	}
	a.inflight.End(itemstate.DigestOf(e.item), e.known, pace)
	return n.result()
}

// report logs the attempt in one line. It logs at level 0 if the attempt failed or a run changed something, and at
// level 1 otherwise.
func report(a *attempt, e ending, now time.Time) {
	text, errorCodes := e.failureText()
	log, message := a.log, "nothing to do"
	switch {
	case text != "":
		message = "reconcile failed"
	case e.unchanged && e.decision.Background:
		log, message = log.V(1), "nothing has changed"
	case e.outcome != nil:
		message = "reconcile done"
	default:
		log = log.V(1)
	}
	if !log.Enabled() {
		return
	}
	facts := []any{"item", a.key.String(), "reason", e.decision.Reason, "duration", now.Sub(a.began).String(), "calls", a.calls.Total()}
	if e.outcome != nil {
		facts = append(facts, "action", string(e.decision.Action), "final", e.outcome.Final)
	}
	if e.item != nil {
		facts = append(facts, "phase", string(e.item.Status.Phase))
	}
	if text != "" {
		facts = append(facts, "error", contract.EscapeBidi(text), "codes", errorCodes)
	}
	log.Info(message, facts...)
}

// failureText returns the text and the codes of the error with which an attempt or its run ended. The text is empty if
// there is no error.
func (e ending) failureText() (string, []lsv1alpha1.ErrorCode) {
	switch {
	case e.outcome != nil && e.outcome.Err != nil && e.err != nil:
		return e.err.Error(), e.outcome.Err.Codes
	case e.outcome != nil && e.outcome.Err != nil:
		return e.outcome.Err.Message, e.outcome.Err.Codes
	case e.err != nil:
		return e.err.Error(), contract.Codes(e.err)
	}
	return "", nil
}

var _ reconcile.Reconciler = (*reconciler)(nil)
