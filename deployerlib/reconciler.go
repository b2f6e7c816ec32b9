// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/shares"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/targets"
)

// reconciler is the generic reconcile of one deployer.
type reconciler struct {
	args     DeployerArgs
	hooks    extension.ReconcileExtensionHooks
	phases   []phase
	ops      map[contract.Action]phase
	client   client.Client // cached reads
	items    itemReader
	resolver *targets.Resolver
	writer   *writer
	tracker  *itemstate.Tracker
	seen     *observer
	queue    *queue
	shares   *shares.Shares
	warn     func(di *lsv1alpha1.DeployItem, reason, message string)
}

// Reconcile runs one pass over an item unless it comes too early, and tells
// the queue when to come back. It never returns an error: backoff is per item
// and kept here, so that it can be combined with the item's deadline.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, nil
	}
	state := r.tracker.Get(req.NamespacedName)
	di, err := r.items.get(ctx, req.NamespacedName)
	if err != nil {
		di = nil
	}
	if rest := r.tooEarly(di, state); rest > 0 {
		r.shares.Return(req.NamespacedName)
		return reconcile.Result{RequeueAfter: rest}, nil
	}
	if claim, wait := r.claim(req.NamespacedName, di); !r.shares.Take(req.NamespacedName, claim) {
		return reconcile.Result{RequeueAfter: wait, Priority: &claim.Priority}, nil // unless it is offered a share before
	}
	defer r.shares.Return(req.NamespacedName)
	c, passCtx, cancel := r.newCycle(ctx, req.NamespacedName, state)
	defer cancel(nil)
	if c.run == nil {
		return reconcile.Result{}, nil
	}
	done := make(chan passed, 1)
	r.args.CountCalls(+1)
	go func() {
		p := r.pass(passCtx, c)
		r.args.CountCalls(-1)
		done <- p
	}()
	p, returned := r.watch(ctx, passCtx, c, done)
	if !returned {
		r.giveUp(ctx, c, context.Cause(passCtx), done)
		return reconcile.Result{}, nil
	}
	return r.schedule(c, p), nil
}

// newCycle prepares a pass. Its context outlives the worker's: a pass ends by
// its own rules, also when the process is told to stop.
func (r *reconciler) newCycle(ctx context.Context, key types.NamespacedName, state *itemstate.Item) (*cycle, context.Context, context.CancelCauseFunc) {
	c := &cycle{
		key: key, state: state, log: logf.FromContext(ctx), began: r.args.Clock.Now(),
		requeue: &extension.HookResult{},
	}
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.run = state.Begin(r.args.Clock, cancel)
	return c, ctx, cancel
}

// tooEarly is the gate: how long a pop must wait, from the cache alone. di is nil if the cache does not have it.
func (r *reconciler) tooEarly(di *lsv1alpha1.DeployItem, state *itemstate.Item) time.Duration {
	if di == nil {
		return 0
	}
	return state.Wait(di, r.args.Clock.Now())
}

// claim is what an item asks a share of the workers for, and how long it may wait for that: to the deadline of its run,
// which ends without a call of the target. Zero: as long as it takes.
func (r *reconciler) claim(key types.NamespacedName, di *lsv1alpha1.DeployItem) (claim shares.Claim, wait time.Duration) {
	claim.Place.Namespace = key.Namespace
	if di == nil {
		return claim, 0
	}
	now := r.args.Clock.Now()
	decision := contract.Evaluate(di, contract.Options{Revision: r.args.Revision, Now: now})
	if claim.Priority = priorityOf(di); claim.Priority == priorityJob && !decision.Due {
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

// pass is one walk through the pipeline, contained: nothing that goes wrong in
// it takes the process down.
func (r *reconciler) pass(ctx context.Context, c *cycle) (p passed) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error(&PanicError{Value: v}, "pass panicked", "stack", string(debug.Stack()))
			r.seen.panicked()
			p = passed{err: &PanicError{Value: v}, failure: true}
		}
	}()
	if pending := c.state.TakeUnconfirmed(); pending != nil {
		return r.flush(ctx, c, pending.(*pendingWrite))
	}
	ctx, end := r.seen.pass(ctx, c)
	c.run.Limit(contract.DefaultTimeout)
	v, err := r.runPhases(ctx, c, r.phases)
	c.run.Unlimit()
	p = r.conclude(ctx, c, v, err)
	p = r.resume(ctx, c, p)
	end(p)
	return p
}

// resume tells a deployer once about an item that has nothing to do.
func (r *reconciler) resume(ctx context.Context, c *cycle, p passed) passed {
	resumer, ok := r.args.Deployer.(Resumer)
	if !ok || !p.settled || !c.writable() || c.decision.Due || c.decision.Held || c.state.Resumed() || c.stored.DeletionTimestamp != nil {
		return p
	}
	resolved, err := r.resolve(ctx, c)
	if err == nil {
		err = r.contained(ctx, c, func(ctx context.Context, _ *lsv1alpha1.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
			return resumer.Resume(ctx, c.stored.DeepCopy(), resolved)
		})
	}
	if err != nil {
		return passed{err: fmt.Errorf("resume: %w", err), failure: true}
	}
	c.state.MarkResumed()
	return p
}

// schedule turns the end of a pass into the next one: the soonest of what
// hooks, waits, backoff and deadline ask for.
func (r *reconciler) schedule(c *cycle, p passed) reconcile.Result {
	r.report(c, p)
	wait, immediate := r.delay(c, p)
	priority := c.priority(p)
	known := c.base != nil && !c.rebased
	if c.base == nil {
		c.run.EndUnread()
	} else {
		c.run.End(itemstate.DigestOf(c.base), known, r.notBefore(wait))
	}
	if wait <= 0 && !immediate {
		return reconcile.Result{Priority: &priority}
	}
	return reconcile.Result{RequeueAfter: max(wait, 1), Priority: &priority}
}

// notBefore is when a pop with nothing new may run again.
func (r *reconciler) notBefore(wait time.Duration) time.Time {
	if wait <= 0 {
		return time.Time{}
	}
	return r.args.Clock.Now().Add(wait)
}

// delay is the soonest of all that asks for another pass. Zero without
// immediate: nothing does.
func (r *reconciler) delay(c *cycle, p passed) (wait time.Duration, immediate bool) {
	asks := []time.Duration{c.wait, p.result.RequeueAfter, r.toDeadline(c)}
	immediate = p.again || r.nextIsDue(c) || p.result.Requeue //nolint:staticcheck // the hooks' contract has it
	retries := c.state.Count(itemstate.End{Failed: p.failure, Settled: p.settled, Immediate: immediate})
	if p.failure {
		r.seen.retry(c.decision.Action)
		asks = append(asks, r.args.Backoff.after(retries.Failures, withJitter))
	}
	if immediate {
		return immediateDelay(retries.Immediate), true
	}
	for _, ask := range asks {
		if ask > 0 && (wait == 0 || ask < wait) {
			wait = ask
		}
	}
	return wait, false
}

// nextIsDue tells that a run ended and the item, as stored now, asks for
// another one: a deletion after an abort, a change that came while it ran. One
// that a pause holds back has to be shown.
func (r *reconciler) nextIsDue(c *cycle) bool {
	ended := c.outcome != nil && c.outcome.Final && !c.decision.Background
	if !ended {
		return false
	}
	next := contract.Evaluate(c.base, contract.Options{Revision: r.args.Revision, Now: r.args.Clock.Now()})
	return next.Due || next.Held
}

// toDeadline is the time left to an open run; zero when there is none.
func (r *reconciler) toDeadline(c *cycle) time.Duration {
	if c.decision.Held {
		return r.toHeldDeadline(c)
	}
	open := c.writable() && c.decision.Due && (c.outcome == nil || !c.outcome.Final && !c.outcome.Done)
	if !open || c.decision.Unchanged {
		return 0
	}
	now := r.args.Clock.Now()
	deadline, ok := contract.Deadline(c.base, c.decision)
	if c.decision.Action == contract.Abort {
		deadline, ok = c.state.AbortDeadline(c.stored, now), true
	}
	if rest, waits := r.targetGrace(c); waits && (!ok || now.Add(rest).Before(deadline)) {
		deadline, ok = now.Add(rest), true
	}
	if !ok {
		return 0
	}
	return max(deadline.Sub(now), time.Millisecond)
}

// toHeldDeadline is the time left to a run that a pause keeps from going on,
// because the item was deleted meanwhile; zero when it is over, or none began.
func (r *reconciler) toHeldDeadline(c *cycle) time.Duration {
	deadline, ok := contract.Deadline(c.base, c.decision)
	if !ok || contract.IsFinal(c.base.Status.Phase) {
		return 0
	}
	return max(deadline.Sub(r.args.Clock.Now()), 0)
}

// withJitter is d ±10 %.
func withJitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d)) //nolint:gosec // spreads load, protects nothing
}

// report logs the pass once.
func (r *reconciler) report(c *cycle, p passed) {
	log := c.log
	if c.outcome != nil {
		log = log.WithValues("action", string(c.decision.Action), "final", c.outcome.Final)
	}
	switch {
	case p.err != nil:
		log.Info("pass failed", "error", contract.EscapeBidi(p.err.Error()))
	case c.unchanged && c.decision.Background:
		log.V(1).Info("nothing has changed", "reason", c.decision.Reason)
	case c.outcome != nil:
		log.Info("pass done", "reason", c.decision.Reason)
	default:
		log.V(1).Info("nothing to do", "reason", c.decision.Reason)
	}
}

var _ reconcile.Reconciler = (*reconciler)(nil)
