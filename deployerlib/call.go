// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"
	"math/rand"
	"runtime/debug"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/pace"
	"github.com/deployerkit/deployerkit/internal/runningcall"
)

// callResult is the result of a deployer call, or the result of a run that needs no call.
type callResult struct {
	args      callArgs
	called    bool              // a call was made
	outcome   *contract.Outcome // nil if the call was cancelled, or if the attempt ended before the call
	waiting   bool              // the call returned WaitFor
	wait      time.Duration     // delay before the next call, after WaitFor or to poll
	unchanged bool              // the call returned ErrUnchanged
	cause     error             // why the call was cancelled or not made
}

// getVerdict returns the verdict of the phase that made the call. If the outcome contains no error and the call did not
// return WaitFor, the verdict is verdictProceed, and the hooks of the type End run. Otherwise, it is verdictStop.
func (c callResult) getVerdict() verdict {
	if c.outcome == nil || c.outcome.Err != nil || c.waiting {
		return verdictStop
	}
	return verdictProceed
}

// caller calls the deployer.
type caller struct {
	clock        clock.PassiveClock
	pollInterval time.Duration
	telemetry    *telemetry
	limit        *pace.Limit
}

// callArgs contains the arguments of a deployer call, except for the item.
type callArgs struct {
	context *lsv1alpha1.Context
	target  *lsv1alpha1.ResolvedTarget
}

// call passes the working copy of the item to the deployer, reverts changes that the deployer must not make, and judges
// the result.
func (c *caller) call(ctx context.Context, a *attempt, do action, in callArgs) callResult {
	item := a.session.EnsureCopy()
	if contract.CheckProviderStatus(item.Status.ProviderStatus) != nil {
		// Another client may have stored an invalid provider status. The deployer could not decode it, so the call would
		// fail.
		item.Status.ProviderStatus = nil
	}
	storedPhase, storedErr := item.Status.Phase, item.Status.LastError
	item.Status.Phase = contract.InitialPhase(a.getDecision().Revision, a.getDecision().Action)
	callCtx, end := c.telemetry.observeCall(ctx, a.key, a.getDecision().Action)
	err, keepPhase := splitKeptPhase(c.runWithRecover(callCtx, a, do, in))
	unchanged := isUnchanged(a.getDecision().Action, err)
	if unchanged {
		err = nil
	}
	end(err)
	ret := contract.CallResult{
		Revision: a.getDecision().Revision, Action: a.getDecision().Action, Deleting: a.session.GetOriginal().DeletionTimestamp != nil,
		Phase: item.Status.Phase, KeepPhase: keepPhase, LastError: item.Status.LastError, Cause: getLastCause(a.session.GetStored()), Now: c.clock.Now(),
	}
	item.Status.Phase, item.Status.LastError = storedPhase, storedErr
	if faulty := a.session.ResetProtected(ctx, a.log, "the deployer"); faulty != nil && err == nil {
		err = faulty
	}
	res := callResult{args: in, called: true, unchanged: unchanged, cause: getCause(ctx, err)}
	if res.cause == nil && errors.Is(err, ErrSuperseded) {
		res.cause = ErrInterrupted
	}
	if res.cause != nil {
		return res
	}
	return c.toCallResult(res, ret, err, a)
}

// toCallResult converts the result of a call to an outcome.
func (c *caller) toCallResult(res callResult, ret contract.CallResult, err error, a *attempt) callResult {
	if reason, after, ok := AsWait(err); ok {
		ret.Waiting, ret.Message, res.wait = true, reason, c.limit.Apply(a.log, "WaitFor", after)
	} else {
		ret.Err = err
	}
	status := &a.session.GetWorkingCopy().Status
	if faulty := contract.CheckProviderStatus(status.ProviderStatus); faulty != nil && ret.Err == nil {
		status.ProviderStatus = a.session.GetStored().Status.ProviderStatus
		ret.Err = faulty
	}
	outcome := contract.DetermineOutcome(ret)
	res.outcome = &outcome
	res.waiting = ret.Waiting
	if outcome.Waiting && res.wait == 0 {
		res.wait = withJitter(c.pollInterval)
	}
	return res
}

// runWithRecover runs an action of the deployer and converts a panic to an error.
func (c *caller) runWithRecover(ctx context.Context, a *attempt, do action, in callArgs) (err error) {
	defer func() {
		if v := recover(); v != nil {
			p := &PanicError{Value: v, Stack: debug.Stack()}
			a.log.Error(p, "deployer panicked", "stack", string(p.Stack))
			c.telemetry.recordPanic()
			err = p
		}
	}()
	ctx, item := a.session.GetUserCopy(runningcall.With(ctx, a))
	return do(ctx, in.context, item, in.target)
}

// withJitter returns d ±10 %.
func withJitter(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)*0.2*float64(d)) //nolint:gosec // spreads load, protects nothing
}
