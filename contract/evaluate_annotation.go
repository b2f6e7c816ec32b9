// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// evaluateAnnotation decides under the annotation revision.
func evaluateAnnotation(v view, d *Decision) {
	switch {
	case v.awaitsJob():
		d.Reason = WhyAwaitingJob
	case v.deleteRests():
		d.Reason = WhyDeleteFailed
	default:
		d.Reason, d.New = v.annotationRun()
		d.Due = d.Reason != WhyFinished
		d.Forceable = true
	}
	if !d.Due {
		return
	}
	if v.op == lsv1alpha1.ReconcileOperation {
		d.Remove = append(d.Remove, lsv1alpha1.OperationAnnotation)
	}
	if v.has(lsv1alpha1.ReconcileTimestampAnnotation) {
		d.Remove = append(d.Remove, lsv1alpha1.ReconcileTimestampAnnotation)
	}
}

// annotationRun tells why a run is due and whether it begins now.
func (v view) annotationRun() (why string, isNew bool) {
	switch {
	case v.op == lsv1alpha1.ReconcileOperation:
		return WhyOperation, true
	case v.annotationStarted():
		return WhyInProgress, v.overtaken()
	case !IsFinal(v.phase):
		return WhyNotStarted, true
	case v.op == lsv1alpha1.ForceReconcileOperation:
		return WhyOperation, true
	case v.changed:
		return WhyGeneration, true
	case v.deleting:
		return WhyDeletion, true
	default:
		return WhyFinished, false
	}
}

// annotationStarted reports whether a run is in progress. A run that does not say when it began was not started by a
// deployer: it could never end by its deadline. Abort needs no start.
func (v view) annotationStarted() bool {
	return isWorking(v.phase) && (v.op == AbortOperation || !v.di.Status.LastReconcileTime.IsZero())
}

// overtaken reports whether a run in progress has to begin again because the item changed. An abort never does.
// force-reconcile on a terminating item does not store the generation, so there the time of the deletion decides.
func (v view) overtaken() bool {
	switch {
	case v.op == AbortOperation:
		return false
	case v.op == lsv1alpha1.ForceReconcileOperation && v.deleting:
		return v.changed && !v.startedSinceDeletion()
	default:
		return v.changed
	}
}

// startedSinceDeletion reports whether the last run began after the item was deleted.
func (v view) startedSinceDeletion() bool {
	return notBefore(v.di.Status.LastReconcileTime, v.di.DeletionTimestamp)
}

// deleteRests reports whether the last Delete failed and nothing new was asked for. The time is compared because not
// every client bumps the generation of an item that it deletes.
func (v view) deleteRests() bool {
	asked := v.op == lsv1alpha1.ReconcileOperation || v.op == lsv1alpha1.ForceReconcileOperation
	return v.deleting && !asked && isFailure(v.phase) && !v.changed && v.startedSinceDeletion()
}

// awaitsJob reports whether an Execution created the item and has not asked for anything yet: Landscapers v0.28 to
// v0.67 set the job ID a moment later.
func (v view) awaitsJob() bool {
	return v.managed() && !v.deleting && !v.has(lsv1alpha1.OperationAnnotation) &&
		v.phase == "" && v.di.Status.ObservedGeneration == 0
}
