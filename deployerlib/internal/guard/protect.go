// SPDX-License-Identifier: Apache-2.0

package guard

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// ResetProtected undoes the changes that user code (hooks and the deployer) must not make. The parameter `before` is
// the status before user code ran, and the parameter `after` is the status that user code may have changed.
// ResetProtected resets these fields of the changed status: the job IDs and their times, deployItemPhase,
// observedGeneration, lastReconcileTime, deployer, the error history and the library's own conditions. User code may
// write phase, lastError, providerStatus, exportRef and all other conditions.
func ResetProtected(before, after *lsv1alpha1.DeployItemStatus) {
	if before == nil || after == nil {
		return
	}
	b := before.DeepCopy()
	after.JobID, after.JobIDFinished, after.JobIDGenerationTime = b.JobID, b.JobIDFinished, b.JobIDGenerationTime
	after.TransitionTimes, after.DeployerPhase = b.TransitionTimes, b.DeployerPhase
	after.ObservedGeneration, after.LastReconcileTime, after.Deployer = b.ObservedGeneration, b.LastReconcileTime, b.Deployer
	after.FirstError, after.LastErrors = b.FirstError, b.LastErrors
	resetConditions(b, after)
}

// CopyOutcome copies the library's conditions from the parameter `told`, which is the status of an outcome, to the
// parameter `status`. Unless d is the decision about a background run, CopyOutcome also copies phase and
// lastError. If told or status is nil, CopyOutcome does nothing.
//
// A write calls CopyOutcome when it is rebased onto a newer version of the item. The newer version may contain
// values from an earlier attempt of the same run. Without CopyOutcome, the rebased changes would not overwrite
// these values, because the changes contain only the fields in which the outcome differs from the older version.
func CopyOutcome(told, status *lsv1alpha1.DeployItemStatus, d contract.Decision) {
	if told == nil || status == nil {
		return
	}
	b := told.DeepCopy()
	if !d.Background {
		status.Phase, status.LastError = b.Phase, b.LastError
	}
	resetConditions(b, status)
}

// resetConditions restores the library's conditions.
func resetConditions(before, after *lsv1alpha1.DeployItemStatus) {
	for _, t := range contract.AllConditionTypes() {
		after.Conditions = resetCondition(before.Conditions, after.Conditions, t)
	}
}

// resetCondition restores the condition of one type.
func resetCondition(before, after []lsv1alpha1.Condition, t lsv1alpha1.ConditionType) []lsv1alpha1.Condition {
	old, now := contract.GetCondition(before, t), contract.GetCondition(after, t)
	switch {
	case old == nil:
		return contract.RemoveCondition(after, t)
	case now == nil:
		return append(append([]lsv1alpha1.Condition(nil), after...), *old)
	}
	out := append([]lsv1alpha1.Condition(nil), after...)
	for i := range out {
		if out[i].Type == t {
			out[i] = *old
		}
	}
	return out
}
