// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// seen contains the failing checks. The value for each check is its message or a part of its message.
type seen map[string]string

// stillThere is the message of checks that fail because an item still exists after the job that should delete it.
const stillThere = "the job of the deletion has ended, but the item still exists"

// fault is a row of the table of injected faults.
type fault struct {
	name  string
	spoil newFaultInjector
	// The field `fails` contains the checks that must fail, and the field `passes` contains checks that must still
	// pass. Other checks do not run.
	fails  seen
	passes []string
	// waits is true if the checks fail only after a time limit, because they wait for a write that the deployer never
	// makes.
	waits bool
}

// The following functions return spoilers that change one kind of read or write.

func onRead(f func(item)) newFaultInjector {
	return func(func(item) bool) *faultInjector { return &faultInjector{onRead: f} }
}

func onStore(f func(item)) newFaultInjector {
	return func(func(item) bool) *faultInjector { return &faultInjector{onStore: f} }
}

func onKeep(f func(item)) newFaultInjector {
	return func(func(item) bool) *faultInjector { return &faultInjector{onKeep: f} }
}

func onFindTarget(f func(error, *lsv1alpha1.Target) error) newFaultInjector {
	return func(func(item) bool) *faultInjector { return &faultInjector{onFindTarget: f} }
}

func onUninstall(err error) newFaultInjector {
	return func(func(item) bool) *faultInjector { return &faultInjector{onUninstall: func() error { return err }} }
}

// The following functions report properties of items.

// isFinished reports whether the job of an item has ended.
func isFinished(di item) bool {
	return contract.IsFinal(di.Status.Phase) && di.Status.JobID == di.Status.JobIDFinished
}

func inPhase(phase lsv1alpha1.DeployItemPhase) func(item) bool {
	return func(di item) bool { return di.Status.Phase == phase }
}

func isAborting(di item) bool {
	return di.Annotations[lsv1alpha1.OperationAnnotation] == string(contract.AbortOperation)
}

func isInterrupted(di item) bool {
	return di.Status.LastError != nil && di.Status.LastError.Reason == "InterruptOperation"
}

// The following functions change an item that the deployer reads or writes.

// replace changes the phase of an item from old to phase. It does nothing if the item is in any other phase.
func replace(di item, old, phase lsv1alpha1.DeployItemPhase) {
	if di.Status.Phase == old {
		di.Status.Phase = phase
	}
}

// replaceInitialPhase returns a function that replaces the phases Init and InitDelete by the given phase.
func replaceInitialPhase(phase lsv1alpha1.DeployItemPhase) func(item) {
	return func(di item) {
		replace(di, phases.Init, phase)
		replace(di, phases.InitDelete, phase)
	}
}

// setError sets an error on an item whose run has ended.
func setError(di item) {
	if now := metav1.Now(); contract.IsFinal(di.Status.Phase) {
		di.Status.LastError = &lsv1alpha1.Error{
			Operation: "Spoil", Reason: "Spoiled", Message: "on purpose", LastTransitionTime: now, LastUpdateTime: now,
		}
	}
}

// onError calls the function `change` with the last error of an item. It does nothing if the item has no last error.
func onError(di item, change func(*lsv1alpha1.Error)) {
	if di.Status.LastError != nil {
		change(di.Status.LastError)
	}
}

// replaceOperation changes the operation of an item from old to op. It does nothing if the item has any other
// operation.
func replaceOperation(di item, old, op lsv1alpha1.Operation) {
	if di.Annotations[lsv1alpha1.OperationAnnotation] == string(old) {
		di.Annotations[lsv1alpha1.OperationAnnotation] = string(op)
	}
}

func newOperationReplacer(old, op lsv1alpha1.Operation) func(item) {
	return func(di item) { replaceOperation(di, old, op) }
}

// removeOperationIf returns a function that removes the operation annotation from each item for which `fits` returns
// true.
func removeOperationIf(fits func(item) bool) func(item) {
	return func(di item) {
		if fits(di) {
			delete(di.Annotations, lsv1alpha1.OperationAnnotation)
		}
	}
}

// removeDeletionTimestamp returns a function that hides the deletion timestamp of items that were deleted before their
// first run.
func removeDeletionTimestamp() func(item) {
	living := map[types.UID]bool{}
	return func(di item) {
		living[di.UID] = living[di.UID] || di.Status.Phase == "" && di.DeletionTimestamp != nil
		if living[di.UID] {
			di.DeletionTimestamp = nil
		}
	}
}
