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
	args        DeployerArgs
	phases      []phase
	items       itemReader
	tracker     *itemstate.Tracker
	shares      *shares.Shares
	events      *dispatcher
	phaseRunner *phaseRunner
	loader      *loader
	caller      *caller
	writer      *statuswriter.Writer
	watchdog    *watchdog
	telemetry   *telemetry
	warn        func(di *lsv1alpha1.DeployItem, reason, message string)
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
		decision := r.evaluateContract(di)
		if rest := state.GetDelay(di, decision.Due && !decision.Background, r.args.Clock.Now()); rest > 0 {
			r.shares.Release(req.NamespacedName)
			claim, _ := r.newClaim(req.NamespacedName, di)
			return reconcile.Result{RequeueAfter: rest, Priority: &claim.Priority}, nil
		}
	}
	if claim, wait := r.newClaim(req.NamespacedName, di); !r.shares.Acquire(req.NamespacedName, claim) {
		return reconcile.Result{RequeueAfter: wait, Priority: &claim.Priority}, nil // or earlier, if the item gets a share
	}
	defer r.shares.Release(req.NamespacedName)
	a, attemptCtx, cancel := r.newAttempt(ctx, req.NamespacedName, state)
	defer cancel(nil)
	if a == nil {
		return reconcile.Result{}, nil
	}
	attemptCtx = r.telemetry.startRecording(attemptCtx, a)
	done := make(chan attemptEnd, 1)
	r.args.CountCalls(+1)
	go func() {
		e := r.run(attemptCtx, a)
		r.args.CountCalls(-1)
		done <- e
	}()
	e, returned := r.watchdog.watch(ctx, attemptCtx, a, done)
	if !returned {
		a.record.Complete(history.Result{Now: r.args.Clock.Now(), Result: "abandoned"})
		return reconcile.Result{}, nil
	}
	return r.scheduleNext(a, e), nil
}

// newClaim returns the item's request for a share of the workers, and how long the item may wait for the share. The
// item may wait until the deadline of its run; after that, the run ends without a call. If the result `wait` is zero,
// the item may wait without limit.
func (r *reconciler) newClaim(key types.NamespacedName, di *lsv1alpha1.DeployItem) (claim shares.Claim, wait time.Duration) {
	claim.Place.Namespace = key.Namespace
	if di == nil {
		return claim, 0
	}
	now := r.args.Clock.Now()
	decision := r.evaluateContract(di)
	if claim.Priority = getPriority(di); claim.Priority == priorityJob && (!decision.Due || decision.Background) {
		claim.Priority = priorityPeriodic
	}
	if di.Spec.Target != nil && !decision.Expired {
		claim.Place.Target = di.Spec.Target.Name
	}
	if deadline, ok := contract.RunDeadline(di, decision); ok && decision.Due && deadline.After(now) {
		wait = deadline.Sub(now)
	}
	return claim, wait
}

// run runs the pipeline once and recovers from panics.
func (r *reconciler) run(ctx context.Context, a *attempt) (e attemptEnd) {
	defer func() {
		if v := recover(); v != nil {
			a.log.Error(&PanicError{Value: v}, "reconcile panicked", "stack", string(debug.Stack()))
			r.telemetry.recordPanic()
			e = a.newEnd(a.getDecision(), 0).withError(&PanicError{Value: v})
			e.after = r.getItemState(a, e)
		}
	}()
	if u := a.state.PopUnconfirmed(); u != nil {
		return flush(ctx, u)
	}
	ctx, end := r.telemetry.startAttempt(ctx, a.key)
	a.inflight.SetDeadline(contract.DefaultTimeout)
	v, err := r.phaseRunner.runPhases(ctx, a, r.phases)
	a.inflight.RemoveDeadline()
	e = r.tryResume(ctx, a, r.completeAttempt(ctx, a, v, err))
	end(e)
	e.after = r.getItemState(a, e)
	return e
}

// tryResume calls the method Resume of the deployer if no run of the item is due. It does so once per item after the
// start of the process.
func (r *reconciler) tryResume(ctx context.Context, a *attempt, e attemptEnd) attemptEnd {
	resumer, ok := findOptional[Resumer](r.args.Deployer)
	if !ok || e.kind != endSucceeded || !a.isWritable() || e.decision.Due || e.decision.BlockedByPause || a.state.IsResumed() || a.session.GetOriginal().DeletionTimestamp != nil {
		return e
	}
	resolved, err := r.loader.resolveTarget(ctx, a)
	if err == nil {
		err = r.caller.runWithRecover(ctx, a, func(ctx context.Context, _ *lsv1alpha1.Context, _ *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
			return resumer.Resume(ctx, a.session.GetOriginal().DeepCopy(), target)
		}, callArgs{target: resolved})
	}
	if err != nil {
		return attemptEnd{decision: e.decision, responsible: e.responsible, wait: e.wait}.withError(fmt.Errorf("resume: %w", err))
	}
	a.state.MarkResumed()
	return e
}

// scheduleNext records how an attempt ended and returns when to reconcile again.
func (r *reconciler) scheduleNext(a *attempt, e attemptEnd) reconcile.Result {
	now := r.args.Clock.Now()
	logAttempt(a, e, now)
	failed := e.kind == endFailed
	if failed && !e.noRetry {
		r.telemetry.recordRetry(e.decision.Action)
	}
	r.recordProgress(a, e, now)
	retries := a.state.RecordEnd(itemstate.AttemptEnd{
		Failed:    failed && !e.isImmediate() && e.after.backoff == 0,
		Succeeded: e.kind == endSucceeded,
		Immediate: e.isImmediate() || e.isEarly(),
	})
	backoff := func(failures int) time.Duration { return r.args.Backoff.getDelay(failures, withJitter) }
	if e.isTooEarly(retries) {
		r.caller.limit.Apply(a.log, "RequeueAfter of a hook", e.hookRequeue.RequeueAfter)
	}
	n := computeNext(e, retries, backoff, now)
	r.telemetry.recordAttempt(a, e, n, now)
	if e.decision.Background && !failed { // the change may resolve a failure
		n.changeDelay = e.after.triggerDelay
	}
	schedule := n.toSchedule(now)
	if e.after.item == nil {
		a.inflight.CompleteWithoutRead(schedule.TriggersNotBefore)
		return n.toResult()
	}
	a.inflight.Complete(itemstate.ComputeDigest(e.after.item), e.after.current, schedule)
	return n.toResult()
}

// recordProgress records the progress of the item and of its run for the metrics.
func (r *reconciler) recordProgress(a *attempt, e attemptEnd, now time.Time) {
	ended := e.hasEndedRun() || e.decision.Unchanged && e.kind == endSucceeded
	if ended && !a.handedOut.IsZero() {
		r.telemetry.recordRun(e, now.Sub(a.handedOut))
	}
	switch {
	case !e.responsible:
		a.state.RecordProgress(itemstate.ProgressUnknown)
	case e.after.item != nil && (ended || !e.decision.Due || e.decision.Background):
		a.state.RecordProgress(itemstate.GetProgress(e.after.item.Status.Phase))
	}
}

// logAttempt logs the attempt in one line. It logs at level 0 if the attempt failed or a run changed something, and at
// level 1 otherwise.
func logAttempt(a *attempt, e attemptEnd, now time.Time) {
	text, errorCodes := e.getFailure()
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
	facts := []any{"item", a.key.String(), "reason", e.decision.Reason, "duration", now.Sub(a.began).String(), "calls", a.calls.Sum()}
	if e.outcome != nil {
		facts = append(facts, "action", string(e.decision.Action), "final", e.outcome.Final)
	}
	if e.after.item != nil {
		facts = append(facts, "phase", string(e.after.item.Status.Phase))
	}
	if text != "" {
		facts = append(facts, "error", contract.EscapeBidi(text), "codes", errorCodes)
	}
	log.Info(message, facts...)
}

// getFailure returns the text and the codes of the error with which an attempt or its run ended. The text is empty if
// there is no error.
func (e attemptEnd) getFailure() (string, []lsv1alpha1.ErrorCode) {
	switch {
	case e.outcome != nil && e.outcome.Err != nil && e.err != nil:
		return e.err.Error(), e.outcome.Err.Codes
	case e.outcome != nil && e.outcome.Err != nil:
		return e.outcome.Err.Message, e.outcome.Err.Codes
	case e.err != nil:
		return e.err.Error(), contract.ErrorCodes(e.err)
	}
	return "", nil
}

var _ reconcile.Reconciler = (*reconciler)(nil)
