// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/patch"
)

// passed is what a pass came to.
type passed struct {
	result  reconcile.Result // what the hooks asked for; empty with an error
	err     error            // what went wrong, nil for a wait
	failure bool             // counts for the backoff
	again   bool             // come back at once
	settled bool             // the item is as it should be: success, or nothing to do
}

// conclude writes what the pass came to: the one place where a run's outcome
// reaches the item.
func (r *reconciler) conclude(ctx context.Context, c *cycle, v verdict, err error) passed {
	if !c.run.Seal() {
		return passed{}
	}
	if cause := context.Cause(ctx); c.cause == nil && (err != nil || c.outcome == nil) {
		c.cause = cause
	}
	if !c.writable() {
		return c.passed(v, err)
	}
	if c.cause != nil {
		return r.concludeCancelled(ctx, c)
	}
	if errors.Is(err, errConflict) || errors.Is(err, ErrSuperseded) {
		return c.superseded()
	}
	if _, isWrite := errors.AsType[*writeError](err); isWrite && !isKnownRefusal(err) {
		return passed{err: err, failure: true}
	} else if isWrite {
		r.reset(c)
	}
	r.settle(c, err)
	return r.storeOutcome(ctx, c, v, err)
}

// reset takes back what user code did to a status that the API server refused,
// so that the refusal can be told.
func (r *reconciler) reset(c *cycle) {
	c.running.drop()
	c.base.Status.DeepCopyInto(&c.item.Status)
	if c.decision.New && !c.started {
		contract.Start(c.item, c.decision, r.startInfo(c))
	}
}

// passed is the plain end of a pass: the requeue of the hooks, or the error.
func (c *cycle) passed(v verdict, err error) passed {
	if err != nil {
		return passed{err: err, failure: true}
	}
	p := passed{settled: c.wait == 0}
	if v != drop {
		p.result = c.requeue.ReconcileResult
	}
	return p
}

// superseded ends a pass that works on an old version: the event of the newer one wakes the item.
func (c *cycle) superseded() passed {
	c.wait = staleRetry
	c.meetForeign()
	return passed{}
}

// settle puts the outcome, the error or the finish without a call into the working copy.
func (r *reconciler) settle(c *cycle, err error) {
	now := r.args.Clock.Now()
	if err != nil && c.decision.Revision == "" { // a hook failed before the contract was asked
		r.decide(c)
	}
	switch {
	case err != nil && !c.decision.Due:
		c.own()
		contract.HookFailed(c.item, c.decision, err, now)
	case err != nil && c.outcome == nil && r.overdue(c, contract.NewError(err, "", "", now)):
		c.news = contract.NewError(err, "ExecuteHooks", contract.ReasonHookFailed, now)
	case err != nil:
		outcome := contract.Judge(contract.Return{
			Revision: c.decision.Revision, Action: c.decision.Action, Deleting: c.stored.DeletionTimestamp != nil,
			Phase: contract.HandedPhase(c.decision.Revision, c.decision.Action), Err: err, Now: now,
		})
		c.outcome = &outcome
	case !c.decision.Due && !c.decision.Paused && contract.ShowsHookFailure(c.item, c.decision):
		c.own()
		contract.HookRecovered(c.item, c.decision)
	case c.outcome == nil && c.decision.Unchanged:
		c.item.Status = *c.stored.Status.DeepCopy()
		contract.FinishUnchanged(c.item, c.decision, r.startInfo(c))
	}
	deleted := c.decision.Action == contract.Delete && c.outcome != nil && c.outcome.Done
	if c.outcome != nil && !deleted && !r.leaveUnchanged(c) {
		contract.Apply(c.item, c.decision, *c.outcome, now, c.began)
		c.news = c.outcome.Err
	}
}

// storeOutcome writes and turns the outcome into what the queue is told.
func (r *reconciler) storeOutcome(ctx context.Context, c *cycle, v verdict, err error) passed {
	tell := c.news != nil && !c.knows(c.news)
	werr := r.write(ctx, c)
	if tell && (werr == nil || c.ended()) {
		r.warn(c.base, c.news.Reason, c.news.Message)
	}
	if werr != nil {
		if errors.Is(werr, ErrSuperseded) || errors.Is(werr, errConflict) {
			return c.superseded()
		}
		return passed{err: werr, failure: true}
	}
	if err == nil && c.outcome != nil && c.outcome.Err != nil && !c.outcome.Final {
		err = &phaseError{phase: string(c.decision.Action), err: errors.New(c.outcome.Err.Message)}
	}
	if err != nil {
		final := c.outcome != nil && c.outcome.Final && !c.decision.Background
		return passed{err: err, failure: !final, again: final && len(r.hooks[extension.ShouldReconcileHook]) > 0}
	}
	p := c.passed(v, nil)
	p.again = c.outcome != nil && c.outcome.Done && !c.outcome.Final && c.decision.Action == contract.ForceReconcile && !c.decision.Background
	p.failure = c.decision.Background && c.outcome != nil && c.outcome.Err != nil && !c.outcome.Final
	return p
}

// write stores the working copy with the metadata that the outcome calls for.
func (r *reconciler) write(ctx context.Context, c *cycle) error {
	intent := c.intent()
	if c.item == c.stored && intent.isEmpty() && !c.running.pending() {
		return nil
	}
	c.own()
	if intent.removeFinalizer && len(c.base.Finalizers) <= 1 {
		c.base.Status.DeepCopyInto(&c.item.Status) // it goes with the item, and so does the patch
		c.running.drop()
	}
	rule := onConflictRebase
	if !c.started {
		rule = onConflictGiveUp
	}
	_, err := r.writer.store(ctx, c, &c.item.Status, intent, rule)
	if err == nil && c.decision.New && !c.started {
		c.state.Claim(c.item)
	}
	if _, isPatch := errors.AsType[*patchError](err); isPatch || isKnownRefusal(err) {
		err = r.storeRefused(ctx, c, err)
	}
	if _, isWrite := errors.AsType[*writeError](err); isWrite && c.ended() {
		c.state.KeepUnconfirmed(&pendingWrite{item: c.item, base: c.base, stored: c.stored, intent: intent, users: c.running.taken, decision: c.decision})
	}
	return err
}

// ended tells that the outcome must not be lost: calling the deployer again would do the work twice.
func (c *cycle) ended() bool {
	return c.outcome != nil && (c.outcome.Final || c.outcome.Done) && c.called
}

// storeRefused tells that the API server does not take the status. What the
// deployer or a hook put there is given up; a run ends with it.
func (r *reconciler) storeRefused(ctx context.Context, c *cycle, refusal error) error {
	now := r.args.Clock.Now()
	r.reset(c)
	if c.outcome == nil {
		contract.HookFailed(c.item, c.decision, refusal, now)
	} else {
		c.outcome = timedOut(c, refusedError(c, refusal, now))
		contract.Apply(c.item, c.decision, *c.outcome, now, c.began)
	}
	_, err := r.writer.store(ctx, c, &c.item.Status, c.intent(), onConflictRebase)
	return err
}

// refusedError says what the API server did not take.
func refusedError(c *cycle, refusal error, now time.Time) *lsv1alpha1.Error {
	reason := "StatusRefused"
	if patch.Permanent(refusal) {
		reason = reasonTooLarge
	}
	if _, isPatch := errors.AsType[*patchError](refusal); isPatch {
		return contract.NewError(refusedPatch(refusal), string(c.decision.Action), "PatchRefused", now)
	}
	e := contract.NewError(refusal, string(c.decision.Action), reason, now)
	e.Codes = append(e.Codes, lsv1alpha1.ErrorConfigurationProblem)
	return e
}

// intent is what the outcome means for finalizer and annotations.
func (c *cycle) intent() metaIntent {
	intent := metaIntent{}
	if !c.started {
		intent.removeAnnotations = c.decision.Remove
	}
	o := c.outcome
	if o == nil {
		return intent
	}
	intent.removeFinalizer = c.decision.Action == contract.Delete && o.Done
	if o.Consumed {
		intent.removeAnnotations = removeAll(intent.removeAnnotations, []string{lsv1alpha1.OperationAnnotation, contract.AbortTimestampAnnotation})
	}
	return intent
}

// knows tells whether the item showed the error before this pass: an event
// tells of each error once.
func (c *cycle) knows(e *lsv1alpha1.Error) bool {
	outsideJob := c.decision.Background || !c.decision.Due && c.decision.Revision == contract.JobID
	if !outsideJob {
		return sameError(e, c.base.Status.LastError)
	}
	shown := contract.GetCondition(c.base.Status.Conditions, contract.ConditionBackground)
	return shown != nil && shown.Message == e.Message
}

// sameError compares content, not times.
func sameError(a, b *lsv1alpha1.Error) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Operation == b.Operation && a.Reason == b.Reason && a.Message == b.Message && equality.Semantic.DeepEqual(a.Codes, b.Codes)
}

// concludeCancelled ends a pass whose context was cancelled while the
// deployer ran. The cause never becomes the item's error.
func (r *reconciler) concludeCancelled(ctx context.Context, c *cycle) passed {
	c.log.Info("the running call was cancelled", "cause", c.cause.Error())
	now := r.args.Clock.Now()
	c.outcome = nil
	switch {
	case errors.Is(c.cause, ErrInterrupted):
		return r.concludeInterrupted(ctx, c)
	case errors.Is(c.cause, ErrDeadline) && !c.decision.Due:
		return passed{err: errors.New("the hooks did not return in time"), failure: true}
	case errors.Is(c.cause, ErrDeadline) && c.decision.Action == contract.Abort:
		c.outcome = timedOut(c, contract.AbortTimeoutError(lastCause(c.base), now))
	case errors.Is(c.cause, ErrDeadline):
		timeout, _, _ := contract.Timeout(c.stored)
		c.outcome = timedOut(c, contract.TimeoutError(lastCause(c.base), timeout, now))
	}
	r.settle(c, nil)
	p := r.storeOutcome(ctx, c, stop, nil)
	p.again = p.err == nil && errors.Is(c.cause, ErrAborted)
	return p
}

// concludeInterrupted lets the deployer tidy up after Landscaper ended the job
// under it, and keeps what it knows about the target. Nothing else is written.
func (r *reconciler) concludeInterrupted(ctx context.Context, c *cycle) passed {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if c.called && c.decision.Action != contract.Abort {
		callCtx, end := r.seen.call(ctx, c, contract.Abort)
		err := r.contained(callCtx, c, r.args.Deployer.Abort)
		end(err)
		if err != nil {
			c.log.Error(err, "abort after an interrupt failed")
		}
	}
	c.meetForeign()
	fresh, err := r.writer.read(ctx, c)
	if err == nil && fresh != nil {
		err = r.writer.keep(ctx, c, fresh)
	}
	if err != nil && !errors.Is(err, ErrSuperseded) {
		return passed{err: err, failure: true}
	}
	return passed{again: fresh != nil}
}
