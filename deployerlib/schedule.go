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
	freeImmediate = 9 // number of consecutive requeues without a delay, or with a very short one, before a delay is added
	immediateMin  = 100 * time.Millisecond
	immediateMax  = 5 * time.Second
)

// priorityOf returns the priority of an event about an item.
func priorityOf(di *lsv1alpha1.DeployItem) int {
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

// ending describes the end of an attempt. The time of the next attempt depends on these values.
type ending struct {
	decision    contract.Decision
	responsible bool
	hooks       reconcile.Result // the requeue that hooks requested; empty after an error
	wait        time.Duration    // how long to wait after WaitFor, for the next poll, or for a newer version in the cache

	outcome    *contract.Outcome // the outcome of the call or the run; nil if there was none
	err        error             // the error of the attempt; WaitFor is not an error
	failure    bool              // the attempt counts as a failure for the backoff
	over       bool              // the failure is not retried: a change of the item, a hook or a trigger leads to the next attempt
	again      bool              // reconcile again immediately
	settled    bool              // the attempt succeeded, or there was nothing to do
	unchanged  bool              // the call returned ErrUnchanged
	superseded bool              // the item changed; the event of the newer version follows

	// The other fields describe the item and its run after the attempt. The method complete of the reconciler sets them.

	item  *lsv1alpha1.DeployItem // the item as it is stored now; nil if the attempt did not read it
	known bool                   // no change by another client was detected
	due   contract.Decision      // what is now due for the item; set if a run ended
	rest  time.Duration          // how long no trigger starts another background run
	// backoff is the rest of the backoff of the last call, if a background run missed its deadline during this backoff.
	// The attempt that ends the run then makes no call, and does not delay the next one.
	backoff time.Duration

	abortDeadline time.Time     // the time after which a failing Abort is not retried; zero for every other action
	targetGrace   time.Duration // how long a deletion waits for its Target
	waitsTarget   bool          // a deletion waits for its Target
}

// fail returns the ending of an attempt that failed with err. The requeue that hooks requested is lost.
func (e ending) fail(err error) ending {
	e.hooks, e.err, e.failure = reconcile.Result{}, err, true
	return e
}

// supersede returns the ending of an attempt whose item was changed in the meantime.
func (e ending) supersede() ending {
	e.hooks, e.superseded = reconcile.Result{}, true
	return e
}

// next is the time and priority of the next reconcile.
type next struct {
	after     time.Duration
	immediate bool
	hold      time.Duration // the time for which no trigger starts a reconcile
	rest      time.Duration // the time for which also no change of the item starts a reconcile, unless a job is due
	priority  int
}

// pace returns the times for the gate of the item.
func (n next) pace(now time.Time) (p itemstate.Pace) {
	if n.after > 0 {
		p.Next = now.Add(n.after)
	}
	if n.hold > 0 {
		p.Earliest = now.Add(n.hold)
	}
	if n.rest > 0 {
		p.Rest = now.Add(n.rest)
	}
	return p
}

// result returns the result for the queue. Without a delay, nothing is requeued.
func (n next) result() reconcile.Result {
	if n.after <= 0 && !n.immediate {
		return reconcile.Result{Priority: &n.priority}
	}
	return reconcile.Result{RequeueAfter: max(n.after, 1), Priority: &n.priority}
}

// schedule returns when the item is reconciled again. This is the earliest of the times that result from hooks, waits,
// the backoff and the deadline of the run. After a failure, only the deadline is earlier than the backoff.
func schedule(e ending, retries itemstate.Retries, backoff func(failures int) time.Duration, now time.Time) next {
	n := next{priority: e.priority(), immediate: e.immediate()}
	if n.immediate {
		n.after = immediateDelay(retries.Immediate)
		return n
	}
	n.hold = e.rest
	asks := []time.Duration{e.wait, e.hooks.RequeueAfter, e.toDeadline(now)}
	if e.tooSoon(retries) {
		asks[1] = pace.Min
	}
	switch {
	case e.failure:
		if n.hold = e.backoff; n.hold == 0 {
			n.hold = backoff(retries.Failures)
		}
		asks[0], asks[1] = n.hold, 0
		if e.over && e.hooks.RequeueAfter > 0 {
			asks[0] = max(n.hold, e.hooks.RequeueAfter)
		} else if e.over {
			asks[0] = 0
		}
	case e.superseded:
		asks[0] = staleRetry
	}
	for _, ask := range asks {
		if ask > 0 && (n.after == 0 || ask < n.after) {
			n.after = ask
		}
	}
	return n
}

// immediate reports whether the next attempt is due immediately. This is the case if a hook or the attempt requested
// it. It is also the case if a run ended and the stored item requires another run. Examples of another run are a
// deletion after an abort, and a run for a change that was made during the first run. If a pause holds back the other
// run, the next attempt is still due, and reports the pause in the status.
func (e ending) immediate() bool {
	return e.again || e.hooks.Requeue && !e.failure || e.endedRun() && (e.due.Due || e.due.Held) //nolint:staticcheck // hooks may set it
}

// soon reports whether hooks request the next attempt after less than the minimum delay. Hooks may do so freeImmediate
// times in a row, for example because a scheduled time is near.
func (e ending) soon() bool {
	return !e.failure && e.hooks.RequeueAfter > 0 && e.hooks.RequeueAfter < pace.Min
}

// tooSoon reports whether hooks have requested the next attempt after less than the minimum delay too often in a row.
func (e ending) tooSoon(retries itemstate.Retries) bool {
	return e.soon() && retries.Immediate > freeImmediate
}

// endedRun reports whether a run ended with the attempt.
func (e ending) endedRun() bool {
	return e.outcome != nil && e.outcome.Final && !e.decision.Background
}

// priority returns the priority of the next attempt. A retry is not urgent, so that an item that keeps failing cannot
// starve other items.
func (e ending) priority() int {
	switch {
	case e.item == nil || !e.decision.Due || e.decision.Background:
		return priorityPeriodic
	case e.failure:
		return priorityJob
	}
	priority := priorityOf(e.item)
	if hooks := e.hooks.Priority; hooks != nil {
		priority = max(priority, *hooks)
	}
	return priority
}

// toDeadline returns the time that is left for a run that has not ended, or zero if there is no such run or no
// deadline.
func (e ending) toDeadline(now time.Time) time.Duration {
	if e.decision.Held {
		return e.toHeldDeadline(now)
	}
	open := e.responsible && e.item != nil && e.decision.Due && (e.outcome == nil || !e.outcome.Final && !e.outcome.Done)
	if !open || e.decision.Unchanged {
		return 0
	}
	deadline, ok := contract.Deadline(e.item, e.decision)
	if e.decision.Action == contract.ActionAbort {
		deadline, ok = e.abortDeadline, true
	}
	if e.waitsTarget && (!ok || now.Add(e.targetGrace).Before(deadline)) {
		deadline, ok = now.Add(e.targetGrace), true
	}
	if !ok {
		return 0
	}
	return max(deadline.Sub(now), time.Millisecond)
}

// toHeldDeadline returns the time that is left for a run that cannot continue because the item was deleted during a
// pause. It returns zero if the deadline has passed or there is no such run.
func (e ending) toHeldDeadline(now time.Time) time.Duration {
	deadline, ok := contract.Deadline(e.item, e.decision)
	if !ok || contract.IsFinal(e.item.Status.Phase) {
		return 0
	}
	return max(deadline.Sub(now), 0)
}

// immediateDelay returns the delay of an attempt that is due immediately. The delay is zero unless there were too many
// such attempts in a row.
func immediateDelay(inARow int) time.Duration {
	over := inARow - freeImmediate
	if over <= 0 {
		return 0
	}
	wait := immediateMin
	for range over - 1 {
		if wait *= 2; wait >= immediateMax {
			return immediateMax
		}
	}
	return wait
}

// The method `after` returns the delay before the next attempt. The parameter `failures` is the number of consecutive
// failures. The delay is Min, doubled for each further failure up to Max, with jitter.
func (b Backoff) after(failures int, jitter func(time.Duration) time.Duration) time.Duration {
	wait := b.Min
	for range failures - 1 {
		if wait *= 2; wait >= b.Max || wait <= 0 {
			wait = b.Max
			break
		}
	}
	return jitter(wait)
}
