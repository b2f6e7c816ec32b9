// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
)

// annotationFaults contains the faults that are injected into the deployer under the annotation revision.
var annotationFaults = []fault{
	{
		name: "keeps the annotation reconcile-time", waits: true, spoil: onKeep(func(di item) {
			di.Annotations[lsv1alpha1.ReconcileTimestampAnnotation] = "2020-01-01T00:00:00Z"
		}),
		fails: seen{"annotations-taken": "did not lose its annotations operation and reconcile-time within"},
	},
	{
		name: "does not store the start of a run", spoil: onStore(replaceInitialPhase(phases.Progressing)),
		fails: seen{
			"pickup": `the first phase is "Progressing"`, "reconcile-operation": `the first phase is "Progressing"`,
			"generation": `the first phase is "Progressing"`, "generation-midrun": "no run began",
		},
		passes: []string{"succeeds", "delete"},
	},
	{
		name: "removes the operation reconcile without a run", spoil: onRead(func(di item) {
			if contract.IsFinal(di.Status.Phase) {
				replaceOperation(di, lsv1alpha1.ReconcileOperation, contract.AbortOperation)
			}
		}),
		fails:  seen{"reconcile-operation": "no run began"},
		passes: []string{"generation", "succeeds"},
	},
	{
		name: "ignores the operation reconcile during a run", waits: true,
		spoil: onRead(removeOperationIf(func(di item) bool { return di.Status.Phase == phases.Progressing })),
		fails: seen{"reconcile-midrun": "did not lose its operation annotation within"},
	},
	{
		name: "ignores a changed generation", waits: true, spoil: onRead(func(di item) {
			if di.Status.Phase != "" {
				di.Status.ObservedGeneration = di.Generation
			}
		}),
		fails: seen{"generation": "did not finish within"},
	},
	{
		name: "ignores an abort", waits: true, spoil: onRead(removeOperationIf(isAborting)),
		fails: seen{"abort": "did not fail within"},
	},
	{
		name: "deletes an item before an abort", spoil: onRead(removeOperationIf(func(di item) bool { return di.DeletionTimestamp != nil && isAborting(di) })),
		fails:  seen{"abort-deletion": "the abort was skipped"},
		passes: []string{"abort", "delete"},
	},
	{
		name: "removes the operation force-reconcile without a run", spoil: onRead(func(di item) {
			if contract.IsFinal(di.Status.Phase) {
				replaceOperation(di, lsv1alpha1.ForceReconcileOperation, contract.AbortOperation)
			}
		}),
		fails:  seen{"force-reconcile": "no run began"},
		passes: []string{"reconcile-operation"},
	},
	{
		name: "never removes its finalizer", waits: true, spoil: onKeep(func(di item) {
			controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
		}),
		fails: seen{"delete": "not deleted within"},
	},
	{
		name: "sets no finalizer", spoil: onKeep(func(di item) { controllerutil.RemoveFinalizer(di, lsv1alpha1.LandscaperFinalizer) }),
		fails:  seen{"finalizer": `the phase is "Succeeded", but the item lacks the finalizer`, "uninstall": "its deployed objects still exist"},
		passes: []string{"succeeds"},
	},
	{
		name: "writes the spec", spoil: onKeep(func(di item) {
			di.Spec.Timeout = &lsv1alpha1.Duration{Duration: contract.AbortTimeout}
		}),
		fails:  seen{"spec-untouched": "wrote the spec"},
		passes: []string{"succeeds", "known-phases"},
	},
	{
		name: "sets phases of the other revision", spoil: onStore(func(di item) {
			if di.DeletionTimestamp != nil {
				replaceInitialPhase(phases.InitDelete)(di)
			}
		}),
		fails:  seen{"known-phases": `no phase "InitDelete"`},
		passes: []string{"delete"},
	},
	{
		name: "ignores the annotation to ignore an item", spoil: onRead(func(di item) { delete(di.Annotations, lsv1alpha1.IgnoreAnnotation) }),
		fails:  seen{"ignore": "the item was written"},
		passes: []string{"finished-rests"},
	},
}
