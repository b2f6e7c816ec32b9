// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// seen maps failing checks to their message, or a part of it.
type seen map[string]string

// stillThere is the message of a check whose item is not deleted by its job.
const stillThere = "the job of the deletion ended, and the item is still there"

// fault is a row of the table.
type fault struct {
	name  string
	spoil newSpoiler
	// fails lists the checks that must fail, and passes other checks that must pass. No other check is run.
	fails  seen
	passes []string
	// waits is set if a time limit must pass to see that something does not happen.
	waits bool
}

// Spoilers with a single part.

func sees(f func(item)) newSpoiler {
	return func(func(item) bool) *spoiler { return &spoiler{sees: f} }
}

func stores(f func(item)) newSpoiler {
	return func(func(item) bool) *spoiler { return &spoiler{stores: f} }
}

func keeps(f func(item)) newSpoiler {
	return func(func(item) bool) *spoiler { return &spoiler{keeps: f} }
}

func finds(f func(error, *lsv1alpha1.Target) error) newSpoiler {
	return func(func(item) bool) *spoiler { return &spoiler{finds: f} }
}

func uninstalls(err error) newSpoiler {
	return func(func(item) bool) *spoiler { return &spoiler{uninstalls: func() error { return err }} }
}

// What items look like.

// done reports whether the job of an item ended.
func done(di item) bool {
	return contract.IsFinal(di.Status.Phase) && di.Status.JobID == di.Status.JobIDFinished
}

func inPhase(phase lsv1alpha1.DeployItemPhase) func(item) bool {
	return func(di item) bool { return di.Status.Phase == phase }
}

func aborting(di item) bool {
	return di.Annotations[lsv1alpha1.OperationAnnotation] == string(contract.AbortOperation)
}

func interrupted(di item) bool {
	return di.Status.LastError != nil && di.Status.LastError.Reason == "InterruptOperation"
}

// What is done to items.

// replace replaces a phase by another.
func replace(di item, old, phase lsv1alpha1.DeployItemPhase) {
	if di.Status.Phase == old {
		di.Status.Phase = phase
	}
}

// begins replaces the phase at the start of a run.
func begins(phase lsv1alpha1.DeployItemPhase) func(item) {
	return func(di item) {
		replace(di, phases.Init, phase)
		replace(di, phases.InitDelete, phase)
	}
}

// blame sets an error on an item whose run ended.
func blame(di item) {
	if now := metav1.Now(); contract.IsFinal(di.Status.Phase) {
		di.Status.LastError = &lsv1alpha1.Error{
			Operation: "Spoil", Reason: "Spoiled", Message: "on purpose", LastTransitionTime: now, LastUpdateTime: now,
		}
	}
}

// onError changes the error of an item, if there is one.
func onError(di item, change func(*lsv1alpha1.Error)) {
	if di.Status.LastError != nil {
		change(di.Status.LastError)
	}
}

// exchange replaces an operation by another.
func exchange(di item, old, op lsv1alpha1.Operation) {
	if di.Annotations[lsv1alpha1.OperationAnnotation] == string(old) {
		di.Annotations[lsv1alpha1.OperationAnnotation] = string(op)
	}
}

func exchanges(old, op lsv1alpha1.Operation) func(item) {
	return func(di item) { exchange(di, old, op) }
}

// hides removes the operation from items for which fits returns true.
func hides(fits func(item) bool) func(item) {
	return func(di item) {
		if fits(di) {
			delete(di.Annotations, lsv1alpha1.OperationAnnotation)
		}
	}
}

// undead hides the deletion of items that were deleted before their first run.
func undead() func(item) {
	living := map[types.UID]bool{}
	return func(di item) {
		living[di.UID] = living[di.UID] || di.Status.Phase == "" && di.DeletionTimestamp != nil
		if living[di.UID] {
			di.DeletionTimestamp = nil
		}
	}
}
