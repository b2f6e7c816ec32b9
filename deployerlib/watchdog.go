// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itempatch"
	"github.com/deployerkit/deployerkit/deployerlib/internal/itemstate"
)

// watch waits for the pass. false: it was cancelled and did not return within
// the grace period. When the process is told to stop, the pass may go on for
// the grace period before it is cancelled.
func (r *reconciler) watch(ctx, passCtx context.Context, c *cycle, done <-chan passed) (passed, bool) {
	select {
	case p := <-done:
		return p, true
	case <-passCtx.Done():
		return r.await(c.run, done)
	case <-ctx.Done():
	}
	if p, ok := within(r.args.Clock, r.args.GracePeriod, done); ok {
		return p, true
	}
	c.run.Cancel(ErrShutdown)
	return r.await(c.run, done)
}

// await gives user code one grace period to return. Our own writes that follow
// it are bounded by themselves.
func (r *reconciler) await(run *itemstate.Attempt, done <-chan passed) (passed, bool) {
	p, ok := within(r.args.Clock, r.args.GracePeriod, done)
	if ok || run.Abandon() {
		return p, ok
	}
	if p, ok = within(r.args.Clock, abortTimeout+2*writeTimeout, done); ok {
		return p, true
	}
	run.AbandonSealed()
	return p, false
}

// within waits for the end of a pass for some time.
func within(clk clock.WithTicker, d time.Duration, done <-chan passed) (passed, bool) {
	timer := clk.NewTimer(d)
	defer timer.Stop()
	select {
	case p := <-done:
		return p, true
	case <-timer.C():
		return passed{}, false
	}
}

// giveUp frees the worker from a pass that ignores its cancellation. The item
// is told so; until the call returns nothing else runs for it.
func (r *reconciler) giveUp(ctx context.Context, c *cycle, cause error, done <-chan passed) {
	call := c.run.Work()
	c.state.Quarantine(true)
	c.log.Error(cause, "a call ignores its cancellation and was given up")
	r.seen.quarantined(+1)
	go func() {
		<-done
		c.state.Quarantine(false)
		c.run.EndUnread()
		r.seen.quarantined(-1)
		r.queue.add(c.key, priorityJob)
	}()
	if call == nil || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrInterrupted) {
		return
	}
	if err := r.storeGivenUp(ctx, c.key.String(), call, cause); err != nil {
		c.log.Error(err, "write the status of a call that was given up")
	}
}

// storeGivenUp writes the error of a call that does not return. It works on
// its own copies: the hanging call still owns the cycle's.
func (r *reconciler) storeGivenUp(ctx context.Context, key string, call *itemstate.Work, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	own := &cycle{state: r.tracker.Get(types.NamespacedName{Namespace: call.Item.Namespace, Name: call.Item.Name}), stored: call.Item, base: call.Item, decision: call.Decision}
	own.key.Namespace, own.key.Name = call.Item.Namespace, call.Item.Name
	fresh, err := r.writer.read(ctx, own)
	if err != nil || fresh == nil {
		return err
	}
	wanted := fresh.DeepCopy()
	now := r.args.Clock.Now()
	if call.Decision.New && fresh.ResourceVersion == call.Item.ResourceVersion {
		contract.Start(wanted, call.Decision, contract.StartInfo{Now: now, Deployer: r.args.info()})
	} else if !contract.SameRun(fresh, call.Item, call.Decision) {
		return nil
	}
	e := givenUpError(call, cause, now)
	contract.Apply(wanted, call.Decision, *timedOut(own, e), now, now)
	changes, err := itempatch.Diff(fresh, wantedItem(fresh, &wanted.Status, call.Decision.Revision))
	if err != nil {
		return fmt.Errorf("deploy item %s: %w", key, err)
	}
	obj := fresh.DeepCopy()
	_, err = itempatch.Send(ctx, r.client, obj, changes)
	if err == nil {
		r.warn(obj, e.Reason, e.Message)
	}
	return err
}

// givenUpError says which cancellation was ignored.
func givenUpError(call *itemstate.Work, cause error, now time.Time) *lsv1alpha1.Error {
	e := contract.NewError(fmt.Errorf("the deployer ignores cancellation: %w", cause), string(call.Decision.Action), "CancellationIgnored", now)
	if errors.Is(cause, ErrDeadline) {
		e.Codes = append(e.Codes, lsv1alpha1.ErrorTimeout)
	}
	return e
}
