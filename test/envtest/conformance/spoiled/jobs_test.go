// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"errors"
	"strings"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// jobFaults contains the faults that are injected into the deployer under the job-ID revision.
var jobFaults = []fault{
	{
		name: "ends a valid item as failed", spoil: onStore(func(di item) { replace(di, phases.Succeeded, phases.Failed); setError(di) }),
		fails:  seen{"succeeds": `ended as "Failed"`},
		passes: []string{"invalid", "abort"},
	},
	{
		name: "keeps the error of an earlier run", spoil: onStore(func(di item) {
			if di.Status.Phase == phases.Succeeded {
				setError(di)
			}
		}),
		fails:  seen{"succeeds": "the item succeeded with an error, lastError Spoiled", "recovers": "the item succeeded with an error, lastError Spoiled"},
		passes: []string{"pickup", "error-shape"},
	},
	{
		name: "does not store the start of a run", spoil: onStore(replaceInitialPhase(phases.Progressing)),
		fails: seen{
			"pickup": `the first phase is "Progressing"`, "next-job": `the first phase is "Progressing"`, "changed": `the first phase is "Progressing"`,
			"delete-phases": "neither InitDelete nor Deleting",
		},
		passes: []string{"succeeds", "unchanged", "delete"},
	},
	{
		name: "sets a phase that the contract does not contain", spoil: onStore(func(di item) { replace(di, phases.Init, "Preparing") }),
		fails: seen{
			"pickup": `the first phase is "Preparing"`, "progressing": `phase "Preparing" during its run`, "known-phases": `no phase "Preparing"`,
		},
		passes: []string{"succeeds"},
	},
	{
		name: "does not write its identity", spoil: onStore(func(di item) {
			if contract.IsFinal(di.Status.Phase) {
				di.Status.Deployer.Name = ""
			}
		}),
		fails:  seen{"deployer": "status.deployer is", "says-who": `deployer is ""`},
		passes: []string{"succeeds", "pickup"},
	},
	{
		name: "stores a generation that does not exist yet", spoil: onStore(func(di item) { di.Status.ObservedGeneration = di.Generation + 1 }),
		fails:  seen{"pickup": "began with observedGeneration 2, but the generation is 1", "observed-generation": "observedGeneration changed from 0 to 2, and the generation is 1"},
		passes: []string{"succeeds"},
	},
	{
		name: "runs a changed spec without a job", spoil: onRead(func(di item) {
			if isFinished(di) && di.Generation != di.Status.ObservedGeneration {
				di.Status.JobIDFinished = ""
			}
		}),
		fails:  seen{"spec-waits": "the item was written"},
		passes: []string{"next-job", "finished-rests"},
	},
	{
		name: "writes a finished item in each reconcile",
		spoil: onRead(onFirstMatch(func(di item) bool { return isFinished(di) && di.Annotations["example.com/note"] != "" }, func(di item) {
			di.Status.JobIDFinished = ""
		})),
		fails:  seen{"finished-rests": "the item was written"},
		passes: []string{"restart-rests", "succeeds"},
	},
	{
		name: "runs finished jobs again after a restart", spoil: onFirstRead(isFinished, func(di item) { di.Status.JobIDFinished = "" }),
		fails:  seen{"restart-rests": "the item was written"},
		passes: []string{"finished-rests", "resume"},
	},
	{
		name:   "starts running jobs again after a restart",
		spoil:  onFirstRead(inPhase(phases.Progressing), func(di item) { di.Status.Phase = phases.Failed }),
		fails:  seen{"resume": `the item showed phase "Init" after the restart`},
		passes: []string{"restart-rests", "handed-out-meanwhile"},
	},
	{
		name: "fails unfinished items at its start", spoil: func(found func(item) bool) *faultInjector {
			return &faultInjector{onStore: func(di item) {
				if found(di) {
					replace(di, phases.Succeeded, phases.Failed)
					setError(di)
				}
			}}
		},
		fails:  seen{"handed-out-meanwhile": `the item ended as "Failed", lastError Spoiled`},
		passes: []string{"succeeds"},
	},
	{
		name: "fails an item without lastError", spoil: onStore(func(di item) { di.Status.LastError = nil }),
		fails: seen{
			"invalid": "failed without lastError", "abort": "the item failed without lastError", "failed-has-error": `the phase is "Failed", but lastError is not set`,
		},
		passes: []string{"succeeds"},
	},
	{
		name: "writes errors without codes", spoil: onStore(func(di item) { onError(di, func(e *lsv1alpha1.Error) { e.Codes = nil }) }),
		fails:  seen{"invalid-code": "the codes of lastError are []", "timeout": "the codes of lastError are []"},
		passes: []string{"invalid", "error-shape"},
	},
	{
		name: "writes error messages of any length", spoil: onStore(func(di item) {
			onError(di, func(e *lsv1alpha1.Error) { e.Message += strings.Repeat(" and more", 200) })
		}),
		fails:  seen{"error-length": "the message has"},
		passes: []string{"invalid"},
	},
	{
		name: "writes errors without a reason", spoil: onStore(func(di item) { onError(di, func(e *lsv1alpha1.Error) { e.Reason = "" }) }),
		fails:  seen{"error-shape": "lastError is"},
		passes: []string{"invalid", "failed-has-error"},
	},
	{
		name: "fails each deletion", spoil: onUninstall(errors.New("no")),
		fails: seen{
			"delete": stillThere, "uninstall": stillThere, "delete-failed-item": stillThere, "delete-undeployed": stillThere, "deletion-midrun": stillThere,
		},
		passes: []string{"succeeds", "without-uninstall"},
	},
	{
		name: "does not delete its objects", spoil: onUninstall(nil),
		fails:  seen{"uninstall": "its deployed objects still exist", "deletion-midrun": "its deployed objects still exist"},
		passes: []string{"delete", "without-uninstall"},
	},
	{
		name: "deletes an item without a job", spoil: onRead(func(di item) {
			if isFinished(di) && di.DeletionTimestamp != nil {
				di.Status.JobIDFinished = ""
			}
		}),
		fails:  seen{"deletion-waits": "the item was deleted"},
		passes: []string{"delete", "uninstall"},
	},
	{
		name: "ignores delete-without-uninstall", spoil: onRead(func(di item) { delete(di.Annotations, lsv1alpha1.DeleteWithoutUninstallAnnotation) }),
		fails:  seen{"without-uninstall": "the deployed objects are gone", "without-uninstall-target": "cannot uninstall without the Target"},
		passes: []string{"delete"},
	},
	{
		name: "deploys an item that was deleted before it was deployed", spoil: onRead(removeDeletionTimestamp()),
		fails:  seen{"delete-undeployed": stillThere},
		passes: []string{"delete", "delete-failed-item"},
	},
	{
		name: "removes the finalizers of other controllers", spoil: onKeep(func(di item) {
			if di.DeletionTimestamp != nil && !contract.HasLandscaperFinalizer(di) {
				di.Finalizers = nil
			}
		}),
		fails:  seen{"foreign-finalizer": "not found"},
		passes: []string{"delete", "uninstall"},
	},
	{
		name: "aborts a finished item", spoil: onRead(func(di item) {
			if isFinished(di) && isAborting(di) {
				di.Status.Phase, di.Status.JobIDFinished = phases.Progressing, ""
			}
		}),
		fails:  seen{"abort-late": `the item showed phase "Failed"`},
		passes: []string{"abort"},
	},
	{
		name: "deletes an item before an abort", spoil: onRead(removeOperationIf(func(di item) bool { return di.DeletionTimestamp != nil && isAborting(di) })),
		fails:  seen{"abort-deletion": "the abort was skipped"},
		passes: []string{"abort", "delete", "deletion-midrun"},
	},
	{
		name: "continues an interrupted job", spoil: onRead(onFirstMatch(isInterrupted, func(di item) {
			di.Status.Phase, di.Status.JobIDFinished = phases.Succeeded, ""
		})),
		fails:  seen{"interrupt": `the phase of the item became "Progressing"`, "finished-is-final": `the job has finished, but the phase is "Init"`, "ends-once": `the job ended with phase "Failed"`},
		passes: []string{"abort"},
	},
	{
		name: "starts a job for the operation force-reconcile", spoil: onRead(newOperationReplacer(lsv1alpha1.ForceReconcileOperation, lsv1alpha1.TestReconcileOperation)),
		fails:  seen{"force-reconcile": "the job ID became"},
		passes: []string{"test-reconcile"},
	},
	{
		name: "starts no job for the operation test-reconcile", spoil: onRead(newOperationReplacer(lsv1alpha1.TestReconcileOperation, lsv1alpha1.ForceReconcileOperation)), waits: true,
		fails: seen{"test-reconcile": "did not finish another job within"},
	},
	{
		name: "ignores updateOnChangeOnly", spoil: onRead(func(di item) { di.Spec.UpdateOnChangeOnly = false }),
		fails:  seen{"unchanged": `the item showed phase "Init"`},
		passes: []string{"changed"},
	},
	{
		name: "does not run a changed item with updateOnChangeOnly", spoil: onRead(func(di item) {
			if di.Spec.UpdateOnChangeOnly && contract.IsFinal(di.Status.Phase) {
				di.Status.ObservedGeneration = di.Generation
			}
		}),
		fails:  seen{"changed": "no run began"},
		passes: []string{"unchanged", "next-job"},
	},
	{
		name: "runs only changed items", spoil: onRead(func(di item) { di.Spec.UpdateOnChangeOnly = true }),
		fails:  seen{"next-job": "no run began"},
		passes: []string{"changed", "succeeds"},
	},
	{
		name: "runs items of other types", spoil: onRead(func(di item) {
			di.Spec.Type = lsv1alpha1.DeployItemType(strings.TrimSuffix(string(di.Spec.Type), "-other"))
		}),
		fails:  seen{"other-type": "the item was written", "other-type-deleted": "the item was deleted", "type-annotation": "the item was written"},
		passes: []string{"succeeds"},
	},
	{
		name: "uses the type in the annotation", spoil: onRead(func(di item) {
			di.Spec.Type = lsv1alpha1.DeployItemType(di.Annotations[lsv1alpha1.DeployerTypeAnnotation])
		}),
		fails:  seen{"type-annotation": "the item was written"},
		passes: []string{"other-type"},
	},
	{
		name: "ignores the Target selectors", spoil: onFindTarget(func(err error, target *lsv1alpha1.Target) error {
			target.Labels = map[string]string{"environment": "conformance"}
			return err
		}),
		fails:  seen{"other-target": "the item was written"},
		passes: []string{"target-missing"},
	},
	{
		name: "runs an item whose Target is missing", waits: true, spoil: onFindTarget(func(_ error, target *lsv1alpha1.Target) error {
			target.Labels = map[string]string{"environment": "conformance"}
			return nil
		}),
		fails: seen{"target-missing": "did not report its missing Target within"},
	},
	{
		name: "ends a job in two writes", spoil: func(func(item) bool) *faultInjector { return &faultInjector{halves: true} },
		fails: seen{
			"one-write": `phase "Succeeded" was written without jobIDFinished`, "writes": "two jobs cost 7 writes", "unchanged": "the job cost 2 writes",
		},
		passes: []string{"succeeds"},
	},
	{
		name: "removes jobIDFinished", spoil: onStore(func(di item) {
			if di.Status.Phase == phases.Init {
				di.Status.JobIDFinished = ""
			}
		}),
		fails:  seen{"job-ids": `jobIDFinished is ""`},
		passes: []string{"succeeds", "next-job"},
	},
	{
		name: "writes a field that is no longer used", spoil: onStore(func(di item) { di.Status.DeployerPhase = new(string(di.Status.Phase)) }),
		fails:  seen{"deprecated": "deployItemPhase is set"},
		passes: []string{"succeeds"},
	},
	{
		name: "ignores the annotation to ignore an item", spoil: onRead(func(di item) { delete(di.Annotations, lsv1alpha1.IgnoreAnnotation) }),
		fails:  seen{"ignore": "the item was written"},
		passes: []string{"finished-rests"},
	},
}
