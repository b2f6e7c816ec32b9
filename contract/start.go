// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// StartInfo is what Start writes in addition to what the item determines.
type StartInfo struct {
	// Now is the time of the start.
	Now time.Time
	// Deployer describes the deployer. It replaces the stored value as a whole.
	Deployer lsv1alpha1.DeployerInformation
	// JobID is the new job ID if [Decision.NewJob] is set. Otherwise it is not used.
	JobID string
}

// Start changes di.Status in memory to that of a started run, whether due or forced. A background run changes nothing,
// because a finished job must not have a phase that is not final. The caller persists the change before the action.
//
// An abort or force-reconcile on a terminating item does not change observedGeneration, so that Delete stays due.
func Start(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || d.Background {
		return
	}
	startFields(di, d, s)
	di.Status.Phase = startPhase(d.Revision, isDeleting(di))
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionBackground)
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionTruncated)
}

// FinishUnchanged ends a job that has nothing to do, in one write: it sets the fields of a start and those of a finish,
// and the phase stays Succeeded. It does nothing unless d.Unchanged is set.
func FinishUnchanged(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || !d.Unchanged {
		return
	}
	startFields(di, d, s)
	rulesOf(d.Revision).finish(&di.Status, s.Now)
}

// startFields writes all fields of a start except the phase.
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

// startTime returns the lastReconcileTime of a run. It is never before the time of the request. Otherwise a clock that
// runs slow would make a started run look as if it had not started.
func startTime(di *lsv1alpha1.DeployItem, r Revision, now time.Time) time.Time {
	return later(now, rulesOf(r).requested(di))
}
