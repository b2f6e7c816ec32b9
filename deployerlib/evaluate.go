// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/uuid"

	"github.com/deployerkit/deployerkit/contract"
)

// isPaused reports whether the item carries the pause annotation.
func isPaused(a *attempt) bool { return contract.IsPaused(a.session.Read()) }

// checkPause ends the attempt if the item is paused, unless a run in progress or an abort continues despite the pause.
// After checkPause has ended the attempt, no further hooks run. When the pause annotation is removed, an event leads to
// the next attempt.
func (r *reconciler) checkPause(_ context.Context, a *attempt) (verdict, error) {
	d := r.due(a.session.Working())
	if !d.Paused {
		return proceed, nil
	}
	a.decision = d
	a.state.ClearAbort()
	markPaused(a, d)
	return stop, nil
}

// markPaused records in memory that a pause holds back a run, or that the pause is over.
func markPaused(a *attempt, d contract.Decision) {
	if contract.HasPausedCondition(a.session.Working(), d) {
		return
	}
	contract.MarkPaused(a.session.EnsureCopy(), d, a.began)
	a.session.Snapshot()
}

// evaluate determines what is due according to the contract.
func (r *reconciler) evaluate(_ context.Context, a *attempt) (verdict, error) {
	a.decision = r.due(a.session.Working())
	r.prepare(a, a.decision)
	return proceed, nil
}

// prepare changes the item in memory as a decision requires, so that later hooks receive the new status. If a run is due,
// the phase `operate` stores its start.
func (r *reconciler) prepare(a *attempt, d contract.Decision) {
	markPaused(a, d)
	if d.Action != contract.ActionAbort {
		a.state.ClearAbort()
	}
	if d.Due {
		r.applyStart(a, d)
	}
}

// due returns the decision of the contract about an item.
func (r *reconciler) due(item *lsv1alpha1.DeployItem) contract.Decision {
	return contract.Evaluate(item, contract.Options{Revision: r.args.Revision, Now: r.args.Clock.Now()})
}

// applyStart sets the fields of the status that show the start of a run, in the copy of the item in memory. It limits
// the attempt to the remaining time of the run.
func (r *reconciler) applyStart(a *attempt, d contract.Decision) {
	item := a.session.EnsureCopy()
	if d.New {
		contract.Start(item, d, r.startInfo(a, d))
	}
	a.session.Snapshot()
	a.inflight.Track(a.work(d))
	if !d.Expired {
		r.limit(a, d)
	}
}

// startInfo returns the deployer, the time and, if needed, the new job ID of a start.
func (r *reconciler) startInfo(a *attempt, d contract.Decision) contract.StartInfo {
	info := contract.StartInfo{Now: a.began, Deployer: r.args.info()}
	if d.NewJob {
		info.JobID = uuid.NewString()
	}
	return info
}

// limit cancels the attempt at the deadline of its run.
func (r *reconciler) limit(a *attempt, d contract.Decision) {
	now := r.args.Clock.Now()
	if d.Action == contract.ActionAbort {
		a.inflight.Limit(a.state.AbortDeadline(a.session.Read(), now).Sub(now))
		return
	}
	if deadline, ok := contract.Deadline(a.session.Working(), d); ok {
		a.inflight.Limit(deadline.Sub(now))
		return
	}
	if timeout, ok, _ := contract.Timeout(a.session.Working()); ok && d.Background {
		a.inflight.Limit(timeout)
	}
}

// shouldReconcile returns the verdict of the contract. If the option updateOnChangeOnly skips a job, a hook may still
// force the job.
func shouldReconcile(_ context.Context, a *attempt) (verdict, error) {
	if a.decision.Due && !a.decision.Unchanged {
		return proceed, nil
	}
	return stop, nil
}

// force starts a run for an item for which nothing is due, because a hook requested the run. If the contract forbids
// the run, the attempt ends, and the requeue that the hook requested is kept.
func (r *reconciler) force(_ context.Context, a *attempt) (verdict, error) {
	forced := a.decision.Force()
	if !forced.Due {
		a.log.V(1).Info("a hook requested a run that the contract does not allow now", "reason", a.decision.Reason)
		return stop, nil
	}
	begins := forced.New && !a.decision.New
	a.decision = forced
	if a.session.EnsureCopy(); begins || forced.Background {
		r.applyStart(a, forced)
	}
	return proceed, nil
}
