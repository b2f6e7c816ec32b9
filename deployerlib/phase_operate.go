// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// abortTimeout bounds the tidying up after an interrupt.
const abortTimeout = 5 * time.Minute

// operate runs exactly one action: it loads what the call needs, stores the
// start, and lets the action's own phase do the rest.
func (r *reconciler) operate(ctx context.Context, c *cycle) (verdict, error) {
	if r.withoutCall(c) {
		return stop, nil
	}
	if err := r.load(ctx, c); err != nil {
		markNeverDeployed(c)
		return stop, err
	}
	if err := r.storeStart(ctx, c); err != nil {
		return stop, err
	}
	return r.runPhases(ctx, c, []phase{r.ops[c.decision.Action]})
}

// withoutCall ends runs that need no deployer: past their deadline, or a
// deletion with nothing to uninstall.
func (r *reconciler) withoutCall(c *cycle) bool {
	if r.overdue(c, lastCause(c.stored)) {
		return true
	}
	if d := c.decision; d.Action == contract.Delete && (d.SkipUninstall || contract.NeverDeployed(c.stored)) {
		c.item.Status = *c.stored.Status.DeepCopy()
		c.outcome = &contract.Outcome{Done: true}
		return true
	}
	return false
}

// overdue ends a run whose time is over; a hook that goes on failing must not keep it alive.
func (r *reconciler) overdue(c *cycle, cause *lsv1alpha1.Error) bool {
	now := r.args.Clock.Now()
	switch d := c.decision; {
	case d.Action == contract.Abort && d.Due && !c.state.AbortDeadline(c.stored, now).After(now):
		c.outcome = timedOut(c, contract.AbortTimeoutError(cause, now))
	case d.Expired:
		timeout, _, _ := contract.Timeout(c.stored)
		c.outcome = timedOut(c, contract.TimeoutError(cause, timeout, now))
	default:
		return false
	}
	return true
}

// timedOut is the outcome of a run that the library ends itself.
func timedOut(c *cycle, e *lsv1alpha1.Error) *contract.Outcome {
	o := contract.TimedOut(c.decision.Revision, c.stored.DeletionTimestamp != nil, e)
	return &o
}

// lastCause is why a run has not come to an end so far: its last error, or
// what it waits for; nil when neither is known.
func lastCause(di *lsv1alpha1.DeployItem) *lsv1alpha1.Error {
	if di.Status.LastError != nil {
		return di.Status.LastError
	}
	if waiting := contract.GetCondition(di.Status.Conditions, contract.ConditionWaiting); waiting != nil {
		return &lsv1alpha1.Error{Message: waiting.Message}
	}
	return nil
}

// markNeverDeployed notes on a start without target or context that nothing
// was deployed so far, so that a deletion needs neither.
func markNeverDeployed(c *cycle) {
	if contract.NeverDeployed(c.stored) {
		c.item.Status.Conditions = contract.SetCondition(c.item.Status.Conditions, contract.ConditionDeployed,
			lsv1alpha1.ConditionFalse, "NotStarted", "no deployer call was made yet", c.began)
	}
}

// storeStart makes the run known before anything is done: status first, then
// finalizer and annotations. A run that another process began is fenced.
func (r *reconciler) storeStart(ctx context.Context, c *cycle) error {
	status := &c.base.Status
	if c.decision.New || c.running.pending() || showsOld(c) {
		c.item.Status.Conditions = contract.RemoveCondition(c.item.Status.Conditions, contract.ConditionDeployed)
		status = &c.item.Status
	}
	intent := metaIntent{addFinalizer: c.stored.DeletionTimestamp == nil, removeAnnotations: c.decision.Remove}
	wrote, err := r.writer.store(ctx, c, status, intent, onConflictGiveUp)
	if err != nil {
		return err
	}
	mine := c.state.Claim(c.item)
	if !wrote && !c.decision.Background && !mine {
		if err := r.writer.fence(ctx, c); err != nil {
			return err
		}
	}
	c.started = true
	c.run.Track(c.work())
	c.protect()
	return nil
}

// showsOld tells that the item shows what is over with the first call.
func showsOld(c *cycle) bool {
	return contract.GetCondition(c.item.Status.Conditions, contract.ConditionDeployed) != nil || !contract.PauseMarked(c.base, c.decision)
}

// action is one method of a Deployer.
type action func(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error

// forceOr is ForceReconcile, or Reconcile for deployers that embed Base.
func (r *reconciler) forceOr(d Deployer) action {
	return func(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
		err := d.ForceReconcile(ctx, lsCtx, di, target)
		if errors.Is(err, errForceIsReconcile) {
			return d.Reconcile(ctx, lsCtx, di, target)
		}
		return err
	}
}

// act makes a phase of an action: call it and judge what came back.
func (r *reconciler) act(do action) func(context.Context, *cycle) (verdict, error) {
	return func(ctx context.Context, c *cycle) (verdict, error) {
		if c.cause = c.run.EnterCall(c.work()); c.cause != nil {
			return stop, nil
		}
		c.run.Unlimit() // the bound on hooks; a run without a deadline has none while the deployer works
		r.limit(c)
		err := r.call(ctx, c, do)
		c.run.LeaveCall()
		c.cause = context.Cause(ctx)
		if c.cause == nil && errors.Is(err, ErrSuperseded) {
			c.cause = ErrInterrupted
		}
		if c.cause != nil {
			return stop, nil
		}
		return r.judge(c, err)
	}
}

// limit puts the deadline of the run on the pass.
func (r *reconciler) limit(c *cycle) {
	now := r.args.Clock.Now()
	if c.decision.Action == contract.Abort {
		c.run.Limit(c.state.AbortDeadline(c.stored, now).Sub(now))
		return
	}
	if deadline, ok := contract.Deadline(c.item, c.decision); ok {
		c.run.Limit(deadline.Sub(now))
		return
	}
	if timeout, ok, _ := contract.Timeout(c.item); ok && c.decision.Background {
		c.run.Limit(timeout)
	}
}

// call hands the working copy to the deployer and takes it back: what the
// deployer must not change is restored, a panic becomes an error.
func (r *reconciler) call(ctx context.Context, c *cycle, do action) (err error) {
	c.called = true
	c.checkpoint = func(ctx context.Context) error { return r.writer.checkpoint(ctx, c) }
	if contract.CheckProviderStatus(c.item.Status.ProviderStatus) != nil {
		c.item.Status.ProviderStatus = nil // poisoned by somebody else: no deployer could read it, and no call may fail over it
	}
	storedPhase, storedErr := c.item.Status.Phase, c.item.Status.LastError
	c.item.Status.Phase = contract.HandedPhase(c.decision.Revision, c.decision.Action)
	ctx, end := r.seen.call(ctx, c, c.decision.Action)
	err, c.unchanged = splitUnchanged(c.decision.Action, r.contained(ctx, c, do))
	end(err)
	ret := contract.Return{
		Revision: c.decision.Revision, Action: c.decision.Action, Deleting: c.stored.DeletionTimestamp != nil,
		Phase: c.item.Status.Phase, LastError: c.item.Status.LastError, Cause: lastCause(c.base), Now: r.args.Clock.Now(),
	}
	c.item.Status.Phase, c.item.Status.LastError = storedPhase, storedErr
	c.returned = ret
	if faulty := r.restore(c, "the deployer"); faulty != nil && err == nil {
		err = faulty
	}
	return err
}

// judge turns what came back into an outcome.
func (r *reconciler) judge(c *cycle, err error) (verdict, error) {
	ret := c.returned
	if w, ok := waitOf(err); ok {
		ret.Waiting, ret.Message, c.wait = true, w.reason, w.delay()
	} else {
		ret.Err = err
	}
	if bad := contract.CheckProviderStatus(c.item.Status.ProviderStatus); bad != nil && ret.Err == nil {
		c.item.Status.ProviderStatus = c.base.Status.ProviderStatus
		ret.Err = bad
	}
	outcome := contract.Judge(ret)
	c.outcome = &outcome
	if outcome.Waiting && c.wait == 0 {
		c.wait = withJitter(r.args.PollInterval)
	}
	if ret.Waiting || outcome.Err != nil {
		return stop, nil
	}
	return proceed, nil
}
