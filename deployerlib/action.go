// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"errors"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/targets"
)

// runAction runs exactly one action. It loads the arguments of the call, stores the start, and runs the phase of the
// action.
func (r *reconciler) runAction(ctx context.Context, a *attempt) (verdict, error) {
	if outcome := getOutcomeWithoutCall(r.newFacts(a, a.getDecision())); outcome != nil {
		a.call = callResult{outcome: outcome}
		return verdictStop, nil
	}
	ctx = targets.WithNotBefore(ctx, a.notBefore)
	in, err := r.loader.load(ctx, a)
	if err != nil {
		markNeverDeployed(a)
		return verdictStop, err
	}
	if err := a.session.StoreStart(ctx, a.getDecision()); err != nil {
		return verdictStop, err
	}
	a.inflight.Track(a.newWork(a.getDecision()))
	a.session.SaveStatus()
	return r.phaseRunner.runPhases(ctx, a, []phase{r.newActionPhase(in, a.getDecision().Action)})
}

// markNeverDeployed is called if a run fails because the target or the Context does not exist, or waits for a hook
// before its start. If nothing has been deployed for the item so far, markNeverDeployed records this fact in the
// status. A deletion of the item then needs neither a target nor a Context.
func markNeverDeployed(a *attempt) {
	if contract.WasNeverDeployed(a.session.GetOriginal()) {
		item := a.session.EnsureCopy()
		item.Status.Conditions = contract.SetCondition(item.Status.Conditions, contract.ConditionDeployed,
			lsv1alpha1.ConditionFalse, "NotStarted", "the deployer was not called yet", a.began)
	}
}

// action is one method of a Deployer.
type action func(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error

// newForceReconcile returns an action that calls ForceReconcile. If the deployer uses ForceReconcile of Base, the
// action calls Reconcile instead.
func newForceReconcile(d Deployer) action {
	return func(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
		err := d.ForceReconcile(ctx, lsCtx, di, target)
		if errors.Is(err, errForceIsReconcile) {
			return d.Reconcile(ctx, lsCtx, di, target)
		}
		return err
	}
}

// newActionStep returns a function for a phase. The function calls an action and records the result.
func (r *reconciler) newActionStep(do action, in callArgs) func(context.Context, *attempt) (verdict, error) {
	return func(ctx context.Context, a *attempt) (verdict, error) {
		if cause := a.inflight.StartCall(a.newWork(a.getDecision())); cause != nil {
			a.call = callResult{cause: cause}
			return verdictStop, nil
		}
		a.inflight.RemoveDeadline() // removes the limit that applied to the hooks; the call has a limit only if the run has a deadline
		r.setDeadline(a, a.getDecision())
		a.call = r.caller.call(ctx, a, do, in)
		a.inflight.CompleteCall()
		return a.call.getVerdict(), nil
	}
}
