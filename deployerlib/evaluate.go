// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/uuid"

	"github.com/deployerkit/deployerkit/contract"
)

// isPaused reports whether the item carries the pause annotation.
func isPaused(a *attempt) bool { return contract.IsPaused(a.session.GetOriginal()) }

// checkPause ends the attempt if the item is paused, unless a run in progress or an abort continues despite the pause.
// After checkPause has ended the attempt, no further hooks run. When the pause annotation is removed, an event leads to
// the next attempt.
func (r *reconciler) checkPause(_ context.Context, a *attempt) (verdict, error) {
	d := r.evaluateAttempt(a, a.session.GetWorkingCopy())
	if !d.Paused {
		return verdictProceed, nil
	}
	a.evaluated = &d
	a.state.ClearAbort()
	markPaused(a, d)
	return verdictStop, nil
}

// markPaused records in memory that a pause holds back a run, or that the pause is over.
func markPaused(a *attempt, d contract.Decision) {
	if contract.HasPausedCondition(a.session.GetWorkingCopy(), d) {
		return
	}
	contract.MarkPaused(a.session.EnsureCopy(), d, a.began)
	a.session.SaveStatus()
}

// checkContract determines what is due according to the contract.
func (r *reconciler) checkContract(_ context.Context, a *attempt) (verdict, error) {
	d := r.evaluateAttempt(a, a.session.GetWorkingCopy())
	a.evaluated = &d
	r.prepare(a, d)
	return verdictProceed, nil
}

// prepare changes the item in memory as a decision requires, so that later hooks receive the new status. If a run is
// due, the phase `operate` stores its start.
func (r *reconciler) prepare(a *attempt, d contract.Decision) {
	markPaused(a, d)
	if d.Action != contract.ActionAbort {
		a.state.ClearAbort()
	}
	if d.Due {
		r.applyStart(a, d)
	}
}

// evaluateContract returns the decision of the contract about an item.
func (r *reconciler) evaluateContract(item *lsv1alpha1.DeployItem) contract.Decision {
	return contract.Evaluate(item, contract.Options{Revision: r.args.Revision, Now: r.args.Clock.Now()})
}

// evaluateAttempt returns the decision of the contract about an item, according to the revision that the attempt
// follows.
func (r *reconciler) evaluateAttempt(a *attempt, item *lsv1alpha1.DeployItem) contract.Decision {
	return contract.Evaluate(item, contract.Options{Revision: a.revision, Now: r.args.Clock.Now()})
}

// applyStart sets the fields of the status that show the start of a run, in the copy of the item in memory. It limits
// the attempt to the remaining time of the run.
func (r *reconciler) applyStart(a *attempt, d contract.Decision) {
	item := a.session.EnsureCopy()
	if !d.Background {
		a.handedOut = getHandOutTime(a.session.GetOriginal(), a.state.GetRequestTime(a.session.GetOriginal(), d.New, a.began))
		a.state.MarkUnfinished(a.handedOut)
	}
	if d.New {
		contract.StartRun(item, d, r.startInfo(a, d))
	}
	a.session.SaveStatus()
	a.inflight.Track(a.newWork(d))
	if !d.Expired {
		r.setDeadline(a, d)
	}
}

// getHandOutTime returns when the current run of an item was handed out. The parameter `requested` is the time at which
// this process learned about the run. If the run is a job that was handed out earlier, for example before the process
// started, the time in the status is used. It is in whole seconds, so the job was handed out within the next second.
func getHandOutTime(di *lsv1alpha1.DeployItem, requested time.Time) time.Time {
	generated := di.Status.JobIDGenerationTime
	if generated == nil || di.Status.JobID == di.Status.JobIDFinished {
		return requested
	}
	if latest := generated.Add(time.Second); latest.Before(requested) {
		return latest
	}
	return requested
}

// startInfo returns the deployer, the time and, if needed, the new job ID of a start.
func (r *reconciler) startInfo(a *attempt, d contract.Decision) contract.StartInfo {
	info := contract.StartInfo{Now: a.began, Deployer: r.args.info()}
	if d.NewJob {
		info.JobID = uuid.NewString()
	}
	return info
}

// setDeadline cancels the attempt at the deadline of its run.
func (r *reconciler) setDeadline(a *attempt, d contract.Decision) {
	now := r.args.Clock.Now()
	if d.Action == contract.ActionAbort {
		a.inflight.SetDeadline(a.state.GetAbortDeadline(a.session.GetOriginal(), now).Sub(now))
		return
	}
	if deadline, ok := contract.RunDeadline(a.session.GetWorkingCopy(), d); ok {
		a.inflight.SetDeadline(deadline.Sub(now))
		return
	}
	if timeout, ok, _ := contract.Timeout(a.session.GetWorkingCopy()); ok && d.Background {
		a.inflight.SetDeadline(timeout)
	}
}

// shouldReconcile returns the verdict of the contract. If the option updateOnChangeOnly skips a job, a hook may still
// force the job.
func shouldReconcile(_ context.Context, a *attempt) (verdict, error) {
	if a.evaluated.Due && !a.evaluated.Unchanged {
		return verdictProceed, nil
	}
	return verdictStop, nil
}

// startForcedRun starts a run for an item for which nothing is due, because a hook requested the run. If the contract
// forbids the run, the attempt ends, and the requeue that the hook requested is kept.
func (r *reconciler) startForcedRun(_ context.Context, a *attempt) (verdict, error) {
	forced := a.evaluated.Force()
	if !forced.Due {
		a.log.V(1).Info("a hook requested a run that the contract does not allow now", "reason", a.evaluated.Reason)
		return verdictStop, nil
	}
	begins := forced.New && !a.evaluated.New
	a.forced = &forced
	if a.session.EnsureCopy(); begins || forced.Background {
		r.applyStart(a, forced)
	}
	return verdictProceed, nil
}
