// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// StartInfo is what a start writes beside what the item itself says.
type StartInfo struct {
	// Now is the time of the start.
	Now time.Time
	// Deployer is stored whole.
	Deployer lsv1alpha1.DeployerInformation
	// JobID is the fresh job ID of a [Decision.NewJob]; else unused.
	JobID string
}

// Start changes di.Status in memory to that of a started run, due or forced. A background run changes nothing, because a
// finished job must not show a phase that is not final. The caller persists the change before the action.
//
// An abort or force-reconcile on a terminating item leaves observedGeneration alone, so that Delete stays due.
func Start(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || d.Background {
		return
	}
	startFields(di, d, s)
	di.Status.Phase = startPhase(d.Revision, isDeleting(di))
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionBackground)
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionTruncated)
}

// FinishUnchanged ends a job that has nothing to do, in one write: the fields of a start and those of a finish; the
// phase stays Succeeded. It does nothing unless d.Unchanged.
func FinishUnchanged(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || !d.Unchanged {
		return
	}
	startFields(di, d, s)
	rulesOf(d.Revision).finish(&di.Status, s.Now)
}

// startFields writes everything of a start but the phase.
func startFields(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	status := &di.Status
	if !isDeleting(di) || (d.Action != ActionAbort && d.Action != ActionForceReconcile) {
		status.ObservedGeneration = di.Generation
	}
	status.Deployer = s.Deployer
	status.LastError = nil
	status.Conditions = RemoveCondition(status.Conditions, ConditionWaiting)
	rulesOf(d.Revision).start(status, d, s)
	status.LastReconcileTime = stampRef(startTime(di, d.Revision, s.Now))
}

// startTime is lastReconcileTime of a run: never before the time that others compare it with, or a clock that is behind
// theirs would make a started run look as if it had not been picked up.
func startTime(di *lsv1alpha1.DeployItem, r Revision, now time.Time) time.Time {
	return later(now, rulesOf(r).requested(di))
}
