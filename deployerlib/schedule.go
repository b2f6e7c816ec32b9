// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lsv1helper "github.com/gardener/landscaper/apis/core/v1alpha1/helper"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/internal/pace"
)

// These are priorities in the queue. The item with the highest priority goes first. The priority is set on every
// requeue, because the queue would otherwise use the previous priority again.
const (
	priorityOffered  = 200 // items that waited for a worker and now hold a share
	priorityUser     = 100 // deletions and user requests by annotation
	priorityJob      = 0
	priorityPeriodic = -50
)

const (
	maxImmediate      = 9 // number of consecutive requeues without a delay, or with a very short one, before a delay is added
	minImmediateDelay = 100 * time.Millisecond
	maxImmediateDelay = 5 * time.Second
)

// getPriority returns the priority of an event about an item.
func getPriority(di *lsv1alpha1.DeployItem) int {
	operations := []lsv1alpha1.Operation{
		contract.AbortOperation, lsv1alpha1.ForceReconcileOperation, lsv1alpha1.ReconcileOperation, lsv1alpha1.TestReconcileOperation,
	}
	if di.DeletionTimestamp != nil {
		return priorityUser
	}
	for _, op := range operations {
		if lsv1helper.HasOperation(di.ObjectMeta, op) {
			return priorityUser
		}
	}
	return priorityJob
}

// nextReconcile is the time and priority of the next reconcile.
type nextReconcile struct {
	after        time.Duration
	immediate    bool
	triggerDelay time.Duration // the time for which no trigger starts a reconcile
	changeDelay  time.Duration // the time for which also no change of the item starts a reconcile, unless a job is due
	priority     int
}

// toSchedule returns the times for the gate of the item.
func (n nextReconcile) toSchedule(now time.Time) (p itemstate.Schedule) {
	if n.after > 0 {
		p.Next = now.Add(n.after)
	}
	if n.triggerDelay > 0 {
		p.TriggersNotBefore = now.Add(n.triggerDelay)
	}
	if n.changeDelay > 0 {
		p.ChangesNotBefore = now.Add(n.changeDelay)
	}
	return p
}

// toResult returns the result for the queue. Without a delay, nothing is requeued.
func (n nextReconcile) toResult() reconcile.Result {
	if n.after <= 0 && !n.immediate {
		return reconcile.Result{Priority: &n.priority}
	}
	return reconcile.Result{RequeueAfter: max(n.after, 1), Priority: &n.priority}
}

// computeNext returns when the item is reconciled again. This is the earliest of the times that result from hooks,
// waits, the backoff and the deadline of the run. After a failure, only the deadline is earlier than the backoff.
func computeNext(e attemptEnd, retries itemstate.Retries, backoff func(failures int) time.Duration, now time.Time) nextReconcile {
	n := nextReconcile{priority: e.getPriority(), immediate: e.isImmediate()}
	if n.immediate {
		n.after = getImmediateDelay(retries.Immediate)
		return n
	}
	n.triggerDelay = e.after.triggerDelay
	asks := []time.Duration{e.wait, e.hookRequeue.RequeueAfter, e.getTimeLeft(now)}
	if e.isTooEarly(retries) {
		asks[1] = pace.Min
	}
	switch e.kind {
	case endFailed:
		if n.triggerDelay = e.after.backoff; n.triggerDelay == 0 {
			n.triggerDelay = backoff(retries.Failures)
		}
		asks[0], asks[1] = n.triggerDelay, 0
		if e.noRetry && e.hookRequeue.RequeueAfter > 0 {
			asks[0] = max(n.triggerDelay, e.hookRequeue.RequeueAfter)
		} else if e.noRetry {
			asks[0] = 0
		}
	case endSuperseded:
		asks[0] = staleRetry
	case endOpen, endSucceeded:
	}
	for _, ask := range asks {
		if ask > 0 && (n.after == 0 || ask < n.after) {
			n.after = ask
		}
	}
	return n
}

// isImmediate reports whether the next attempt is due immediately. This is the case if a hook or the attempt requested
// it. It is also the case if a run ended and the stored item requires another run. Examples of another run are a
// deletion after an abort, and a run for a change that was made during the first run. If a pause holds back the other
// run, the next attempt is still due, and reports the pause in the status.
func (e attemptEnd) isImmediate() bool {
	return e.requeue || e.hookRequeue.Requeue && e.kind != endFailed || e.hasEndedRun() && (e.after.nextDecision.Due || e.after.nextDecision.BlockedByPause) //nolint:staticcheck // hooks may set it
}

// isEarly reports whether hooks request the next attempt after less than the minimum delay. Hooks may do so
// maxImmediate times in a row, for example because a scheduled time is near.
func (e attemptEnd) isEarly() bool {
	return e.kind != endFailed && e.hookRequeue.RequeueAfter > 0 && e.hookRequeue.RequeueAfter < pace.Min
}

// isTooEarly reports whether hooks have requested the next attempt after less than the minimum delay too often in a
// row.
func (e attemptEnd) isTooEarly(retries itemstate.Retries) bool {
	return e.isEarly() && retries.Immediate > maxImmediate
}

// hasEndedRun reports whether a run ended with the attempt.
func (e attemptEnd) hasEndedRun() bool {
	return e.outcome != nil && e.outcome.Final && !e.decision.Background
}

// getPriority returns the priority of the next attempt. A retry is not urgent, so that an item that keeps failing
// cannot starve other items.
func (e attemptEnd) getPriority() int {
	switch {
	case e.after.item == nil || !e.decision.Due || e.decision.Background:
		return priorityPeriodic
	case e.kind == endFailed:
		return priorityJob
	}
	priority := getPriority(e.after.item)
	if hooks := e.hookRequeue.Priority; hooks != nil {
		priority = max(priority, *hooks)
	}
	return priority
}

// getTimeLeft returns the time that is left for a run that has not ended, or zero if there is no such run or no
// deadline.
func (e attemptEnd) getTimeLeft(now time.Time) time.Duration {
	if e.decision.BlockedByPause {
		return e.getTimeLeftDuringPause(now)
	}
	open := e.responsible && e.after.item != nil && e.decision.Due && (e.outcome == nil || !e.outcome.Final && !e.outcome.Done)
	if !open || e.decision.Unchanged {
		return 0
	}
	deadline, ok := contract.RunDeadline(e.after.item, e.decision)
	if e.decision.Action == contract.ActionAbort {
		deadline, ok = e.after.abortDeadline, true
	}
	if d := e.after.targetDeadline; !d.IsZero() && (!ok || d.Before(deadline)) {
		deadline, ok = d, true
	}
	if !ok {
		return 0
	}
	return max(deadline.Sub(now), time.Millisecond)
}

// getTimeLeftDuringPause returns the time that is left for a run that cannot continue because the item was deleted
// during a pause. It returns zero if the deadline has passed or there is no such run.
func (e attemptEnd) getTimeLeftDuringPause(now time.Time) time.Duration {
	deadline, ok := contract.RunDeadline(e.after.item, e.decision)
	if !ok || contract.IsFinal(e.after.item.Status.Phase) {
		return 0
	}
	return max(deadline.Sub(now), 0)
}

// getImmediateDelay returns the delay of an attempt that is due immediately. The delay is zero unless there were too
// many such attempts in a row.
func getImmediateDelay(inARow int) time.Duration {
	over := inARow - maxImmediate
	if over <= 0 {
		return 0
	}
	wait := minImmediateDelay
	for range over - 1 {
		if wait *= 2; wait >= maxImmediateDelay {
			return maxImmediateDelay
		}
	}
	return wait
}

// getDelay returns the delay before the next attempt. The parameter `failures` is the number of consecutive
// failures. The delay is Min, doubled for each further failure up to Max, with jitter.
func (b Backoff) getDelay(failures int, jitter func(time.Duration) time.Duration) time.Duration {
	wait := b.Min
	for range failures - 1 {
		if wait *= 2; wait >= b.Max || wait <= 0 {
			wait = b.Max
			break
		}
	}
	return jitter(wait)
}
