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
			t.working()
			t.slow.mark()
			t.slow.letFinish()
			if t.jobs() {
				t.slow.goneOr(t.bounds().Finish, hasFinishedJob)
				t.slow.delete()
			}
			t.slow.gone()
			t.slow.uninstalled()
		},
	},
	{
		Name: "abort-deletion", Rows: "[C4, C6, L30, L35]", Promise: "an abort is processed before a deletion that is requested at the same time", needs: []need{needsSlow}, alone: true,
		run: func(t *testContext) {
			t.working()
			t.restart(func() {
				t.slow.operate(contract.AbortOperation)
				t.slow.mark()
			})
			if t.jobs() {
				t.slow.goneOr(t.bounds().Start, func(di item) bool {
					return hasFailed(di) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
				})
				t.slow.delete()
			}
			t.slow.goneWithin(t.bounds().Start)
			aborted := slices.ContainsFunc(t.slow.recorded(), func(di item) bool {
				return di.DeletionTimestamp != nil && hasFailed(di) && di.Status.LastError != nil
			})
			t.require(aborted, "the abort was skipped")
		},
	},
	{
		Name: "reconcile-midrun", Rows: "[C3, L28]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "the operation reconcile restarts a run in progress, and its annotation is removed",
		run: func(t *testContext) {
			running := t.working()
			t.slow.operate(lsv1alpha1.ReconcileOperation)
			t.slow.settled()
			t.slow.until("get back in progress", func(di item) bool {
				return contract.IsFinal(di.Status.Phase) || slices.Contains(phasesOf(t.after(running)), phases.Init)
			})
			t.beganAfter(running)
		},
	},
	{
		Name: "generation-midrun", Rows: "[C7, L27]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "a changed spec restarts a run in progress",
		run: func(t *testContext) {
			running := t.working()
			t.slow.change(withTimeout(contract.DefaultTimeout + time.Second))
			t.slow.until("report its new generation as observed", func(di item) bool { return di.Status.ObservedGeneration == di.Generation })
			t.beganAfter(running)
		},
	},
}

// hasFailed reports whether a run or a deletion failed.
func hasFailed(di item) bool {
	return di.Status.Phase == phases.Failed || di.Status.Phase == phases.DeleteFailed
}
