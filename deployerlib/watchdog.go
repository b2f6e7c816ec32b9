// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
	"github.com/deployerkit/deployerkit/deployerlib/internal/statuswriter"
)

// watchdog frees the worker if an attempt ignores its cancellation.
type watchdog struct {
	clock     clock.WithTicker
	grace     time.Duration
	deployer  lsv1alpha1.DeployerInformation
	writer    *statuswriter.Writer
	queue     *queue
	telemetry *telemetry
	warn      func(di *lsv1alpha1.DeployItem, reason, message string)
}

// watch waits for the end of an attempt. It returns false if it has abandoned the attempt, because the attempt did not
// return within the grace period after its cancellation. If the process is asked to stop, the attempt may continue for
// one grace period before its context is cancelled.
func (w *watchdog) watch(ctx, attemptCtx context.Context, a *attempt, done <-chan attemptEnd) (attemptEnd, bool) {
	e, returned := w.waitForEnd(ctx, attemptCtx, a, done)
	if !returned {
		w.abandonAttempt(ctx, a, context.Cause(attemptCtx), done)
	}
	return e, returned
}

func (w *watchdog) waitForEnd(ctx, attemptCtx context.Context, a *attempt, done <-chan attemptEnd) (attemptEnd, bool) {
	select {
	case e := <-done:
		return e, true
	case <-attemptCtx.Done():
		return w.waitForCancelled(a.inflight, done)
	case <-ctx.Done():
	}
	if e, ok := w.waitFor(w.grace, done); ok {
		return e, true
	}
	a.inflight.Cancel(ErrShutdown)
	return w.waitForCancelled(a.inflight, done)
}

// waitForCancelled waits for the end of a cancelled attempt. It abandons the attempt if the hooks and the call do not
// return within one grace period. If they return in time, a second time limit applies to the rest of the attempt.
func (w *watchdog) waitForCancelled(inflight *itemstate.Attempt, done <-chan attemptEnd) (attemptEnd, bool) {
	e, ok := w.waitFor(w.grace, done)
	if ok || inflight.TryAbandon() {
		return e, ok
	}
	if e, ok = w.waitFor(abortTimeout+2*statuswriter.WriteTimeout, done); ok {
		return e, true
	}
	inflight.MarkAbandoned()
	return e, false
}

// waitFor waits for the end of an attempt for at most d.
func (w *watchdog) waitFor(d time.Duration, done <-chan attemptEnd) (attemptEnd, bool) {
	timer := w.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case e := <-done:
		return e, true
	case <-timer.C():
		return attemptEnd{}, false
	}
}

// abandonAttempt puts an item in quarantine: no other attempt on the item begins until the abandoned call returns. It
// also writes an error to the status of the item, unless the process shuts down or Landscaper has ended the job.
func (w *watchdog) abandonAttempt(ctx context.Context, a *attempt, cause error, done <-chan attemptEnd) {
	work := a.inflight.GetWork()
	release := a.state.Quarantine()
	a.log.Error(cause, "a call of the deployer or of a hook did not return after its cancellation and was abandoned")
	w.telemetry.recordQuarantine(+1)
	go func() {
		<-done
		release()
		a.inflight.CompleteWithoutRead(time.Time{})
		w.telemetry.recordQuarantine(-1)
		w.queue.add(a.key, priorityJob)
	}()
	if work == nil || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrInterrupted) {
		return
	}
	if err := w.storeAbandoned(ctx, a.state, work, cause); err != nil {
		a.log.Error(err, "cannot write the status of an abandoned call")
	}
}

// storeAbandoned writes the error of a call that does not return.
func (w *watchdog) storeAbandoned(ctx context.Context, state *itemstate.Item, work *itemstate.Work, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statuswriter.WriteTimeout)
	defer cancel()
	now, d := w.clock.Now(), work.Decision
	e := newIgnoredError(work, cause, now)
	stored, err := w.writer.Open(state, work.Item).StoreLive(ctx, d, func(fresh *lsv1alpha1.DeployItem) bool {
		if d.New && fresh.ResourceVersion == work.Item.ResourceVersion {
			contract.StartRun(fresh, d, contract.StartInfo{Now: now, Deployer: w.deployer})
		} else if !contract.IsSameRun(fresh, work.Item, d) {
			return false
		}
		contract.ApplyOutcome(fresh, d, contract.EndedByLibrary(d.Revision, work.Item.DeletionTimestamp != nil, e), now, now)
		return true
	})
	if err != nil {
		return fmt.Errorf("deploy item %s/%s: %w", work.Item.Namespace, work.Item.Name, err)
	}
	if stored != nil {
		w.warn(stored, e.Reason, e.Message)
	}
	return nil
}

// newIgnoredError returns the error for an ignored cancellation.
func newIgnoredError(work *itemstate.Work, cause error, now time.Time) *lsv1alpha1.Error {
	e := contract.NewError(fmt.Errorf("the deployer or one of its hooks did not return after its context was canceled: %w", cause), string(work.Decision.Action), "CancellationIgnored", now)
	if errors.Is(cause, ErrDeadline) {
		e.Codes = append(e.Codes, lsv1alpha1.ErrorTimeout)
	}
	return e
}
