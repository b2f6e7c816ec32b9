// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// StartInfo contains the values that StartRun writes to the status, but cannot take from the item.
type StartInfo struct {
	// Now is the time of the start.
	Now time.Time
	// Deployer describes the deployer. It replaces the stored value as a whole.
	Deployer lsv1alpha1.DeployerInformation
	// JobID is the new job ID if [Decision.NewJob] is set. Otherwise it is not used.
	JobID string
}

// StartRun changes di.Status in memory to the status of a started run. For a background run, it changes nothing,
// because the phase of a finished job must stay final. The caller persists the change before it performs the action.
//
// An abort or force-reconcile on a terminating item does not change observedGeneration, so that Delete stays due.
func StartRun(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || d.Background {
		return
	}
	startFields(di, d, s)
	di.Status.Phase = startPhase(d.Revision, isDeleting(di))
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionBackground)
	di.Status.Conditions = RemoveCondition(di.Status.Conditions, ConditionTruncated)
}

// FinishUnchanged ends a job that needs no call of the deployer. It sets the fields of a start and the fields of a
// finish together, so that one write is enough. The phase stays Succeeded. If d.Unchanged is not set, FinishUnchanged
// does nothing.
func FinishUnchanged(di *lsv1alpha1.DeployItem, d Decision, s StartInfo) {
	if di == nil || !d.Unchanged {
		return
	}
	startFields(di, d, s)
	getRules(d.Revision).setFinished(&di.Status, s.Now)
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
	getRules(d.Revision).start(status, d, s)
	status.LastReconcileTime = toStoredTimePtr(startTime(di, d.Revision, s.Now))
}

// startTime returns the lastReconcileTime of a run that starts now. It is the current time, or the time of the request
// if that is later. The request can be later if the clock of the deployer is slow. A run with a start before its
// request would count as not started.
func startTime(di *lsv1alpha1.DeployItem, r Revision, now time.Time) time.Time {
	return maxTime(now, getRules(r).requestTime(di))
}
