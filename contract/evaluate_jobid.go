// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// evaluateJobID decides under the job-ID revision.
func evaluateJobID(v view, d *Decision) {
	if v.op == lsv1alpha1.TestReconcileOperation {
		d.Remove = append(d.Remove, lsv1alpha1.OperationAnnotation)
	}
	if v.jobPending() {
		evaluatePending(v, d)
	} else {
		evaluateFinished(v, d)
	}
}

// jobPending reports whether Landscaper waits for a job. An empty job ID asks for nothing.
func (v view) jobPending() bool {
	return v.di.Status.JobID != "" && v.di.Status.JobID != v.di.Status.JobIDFinished
}

// jobStarted reports whether the pending job was picked up: the phase is that of a run in progress which began at or
// after the time at which the job was handed out. A run that does not say when it began was not started.
func (v view) jobStarted() bool {
	return isWorking(v.phase) && notBefore(v.di.Status.LastReconcileTime, v.di.Status.JobIDGenerationTime) &&
		!jobStart(v.di).IsZero()
}

func evaluatePending(v view, d *Decision) {
	d.Due = true
	if v.jobStarted() {
		d.Reason = WhyInProgress
		return
	}
	d.New, d.Reason = true, WhyNewJob
	unchanged := v.di.Spec.UpdateOnChangeOnly && !v.changed && v.phase == phaseSucceeded
	if unchanged && d.Action == Reconcile {
		d.Unchanged, d.Reason = true, WhyUnchanged
	}
}

func evaluateFinished(v view, d *Decision) {
	if v.op == lsv1alpha1.TestReconcileOperation {
		d.Due, d.New, d.NewJob, d.Reason = true, true, true, WhyOperation
		return
	}
	refusal := v.backgroundRefusal()
	if v.op == lsv1alpha1.ForceReconcileOperation && refusal == WhyGenerationMoved && !v.managed() {
		refusal = ""
	}
	if refusal != "" {
		d.Reason = refusal
		return
	}
	d.Background, d.Forceable = true, true
	switch {
	case v.op == lsv1alpha1.ForceReconcileOperation:
		d.Due, d.Reason = true, WhyBackgroundForced
	case backgroundOwed(v.di):
		d.Due, d.Reason = true, WhyBackgroundOwed
	default:
		d.Reason = WhyFinished
	}
}

// backgroundRefusal tells why a finished item must not get a background run; empty when it may. Landscaper deletes and
// updates items in the order of their dependencies: what it has not handed out yet must not run ahead.
func (v view) backgroundRefusal() string {
	switch {
	case v.di.Status.JobIDFinished == "":
		return WhyNeverRun
	case v.deleting:
		return WhyDeletionPending
	case !IsFinal(v.phase):
		return WhyNotFinal
	case v.changed:
		return WhyGenerationMoved
	default:
		return ""
	}
}

// backgroundOwed reports whether a background run has to be tried again.
func backgroundOwed(di *lsv1alpha1.DeployItem) bool {
	c := GetCondition(di.Status.Conditions, ConditionBackground)
	return c != nil && c.Status == lsv1alpha1.ConditionTrue
}
