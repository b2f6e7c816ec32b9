// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// midrunChecks are the checks of requests that arrive while a run is in progress.
var midrunChecks = []Check{
	{
		Name: "deletion-midrun", Rows: "[C13, L33]", Promise: "an item that is deleted during its run is removed, together with its deployed objects", needs: []need{needsSlow},
		run: func(t *testContext) {
			t.deploySlow()
			t.slow.markDeleted()
			t.slow.allowSuccess()
			if t.usesJobs() {
				t.slow.waitForDeletionOr(t.getBounds().Finish, hasFinishedJob)
				t.slow.delete()
			}
			t.slow.waitForDeletion()
			t.slow.requireUninstalled()
		},
	},
	{
		Name: "abort-deletion", Rows: "[C4, C6, L30, L35]", Promise: "an abort is processed before a deletion that is requested at the same time", needs: []need{needsSlow}, alone: true,
		run: func(t *testContext) {
			t.deploySlow()
			t.restartDuring(func() {
				t.slow.setOperation(contract.AbortOperation)
				t.slow.markDeleted()
			})
			if t.usesJobs() {
				t.slow.waitForDeletionOr(t.getBounds().Start, func(di item) bool {
					return hasFailed(di) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
				})
				t.slow.delete()
			}
			t.slow.waitForDeletionWithin(t.getBounds().Start)
			aborted := slices.ContainsFunc(t.slow.getRecordedVersions(), func(di item) bool {
				return di.DeletionTimestamp != nil && hasFailed(di) && di.Status.LastError != nil
			})
			t.require(aborted, "the abort was skipped")
		},
	},
	{
		Name: "reconcile-midrun", Rows: "[C3, L28]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "the operation reconcile restarts a run in progress, and its annotation is removed",
		run: func(t *testContext) {
			running := t.deploySlow()
			t.slow.setOperation(lsv1alpha1.ReconcileOperation)
			t.slow.waitForOperationRemoved()
			t.slow.waitUntil("get back in progress", func(di item) bool {
				return contract.IsFinal(di.Status.Phase) || slices.Contains(listPhases(t.listVersionsAfter(running)), phases.Init)
			})
			t.requireStartedAfter(running)
		},
	},
	{
		Name: "generation-midrun", Rows: "[C7, L27]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "a changed spec restarts a run in progress",
		run: func(t *testContext) {
			running := t.deploySlow()
			t.slow.patch(withTimeout(contract.DefaultTimeout + time.Second))
			t.slow.waitUntil("report its new generation as observed", func(di item) bool { return di.Status.ObservedGeneration == di.Generation })
			t.requireStartedAfter(running)
		},
	},
}

// hasFailed reports whether a run or a deletion failed.
func hasFailed(di item) bool {
	return di.Status.Phase == phases.Failed || di.Status.Phase == phases.DeleteFailed
}
