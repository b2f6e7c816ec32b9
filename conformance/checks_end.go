// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

var cancelChecks = []Check{
	{
		Name: "abort", Rows: "[C4, C6, L31]", Promise: "an abort ends a run as Failed, and its annotation is removed", needs: []need{needsSlow},
		run: func(t *testContext) {
			t.deploySlow()
			t.slow.setOperation(contract.AbortOperation)
			di := t.slow.waitUntil("fail", func(di item) bool { return di.Status.Phase == phases.Failed })
			t.require(di.Status.LastError != nil, "the item failed without lastError")
			t.slow.waitForAbortRemoved()
		},
	},
	{
		Name: "abort-late", Rows: "[C6, L30, Lx7]", Promise: "an abort that arrives after the end of the run has no effect, and its annotation is removed",
		run: func(t *testContext) {
			done := t.deployValid()
			t.valid.waitForOperationRemoved()
			t.valid.setOperation(contract.AbortOperation)
			t.valid.waitForAbortRemoved()
			for _, di := range t.listVersionsAfter(done) {
				t.require(di.Status.Phase == phases.Succeeded, "the item showed phase %q", di.Status.Phase)
			}
		},
	},
	{
		Name: "interrupt", Rows: "[C4]", Revision: contract.RevisionJobID, needs: []need{needsSlow},
		Promise: "a job that Landscaper has ended does not continue, and the next job runs",
		run: func(t *testContext) {
			running := t.deploySlow()
			t.slow.requestInterrupt()
			t.waitForOtherItem()
			t.slow.waitUntilUnchanged()
			di := t.slow.get()
			t.require(di.Status.Phase == phases.Failed && di.Status.JobIDFinished == running.Status.JobID, "the phase of the item became %q%s", di.Status.Phase, formatError(di))
			t.require(di.Status.LastError != nil && di.Status.LastError.Reason == "InterruptOperation", "Landscaper's error was overwritten%s", formatError(di))
			t.slow.requestRun()
			t.slow.waitUntil("get back in progress", func(di item) bool { return isWorking(di.Status.Phase) })
		},
	},
	{
		Name: "force-reconcile", Rows: "[L32, Lx8]", Promise: "force-reconcile on a finished item starts a run, and its annotation is removed",
		run: func(t *testContext) {
			done := t.deployValid()
			t.valid.waitForOperationRemoved()
			t.valid.setOperation(lsv1alpha1.ForceReconcileOperation)
			t.valid.waitForOperationRemoved()
			di := t.valid.requireSucceeded()
			if t.usesJobs() {
				t.require(di.Status.JobID == done.Status.JobID, "the job ID became %q", di.Status.JobID)
				return
			}
			t.valid.waitUntil("reach a final phase", isFinal)
			shown := listPhases(t.listVersionsAfter(done))
			t.require(slices.ContainsFunc(shown, isWorking), "no run began; the phases of the item were %q", shown)
		},
	},
}

var optionChecks = []Check{
	{
		Name: "ignore", Rows: "[C8]", Promise: "a finished item with the annotation ignore is not written, whatever is requested; without the annotation the request is processed",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.waitForOperationRemoved()
			t.valid.patch(withAnnotation(lsv1alpha1.IgnoreAnnotation, "true"))
			t.valid.requestRun()
			t.requireNoWrites(t.valid.get())
			t.valid.patch(withAnnotation(lsv1alpha1.IgnoreAnnotation, "false"))
			t.valid.requireSucceeded()
		},
	},
	{
		Name: "test-reconcile", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "test-reconcile on a finished item creates its own job, and its annotation is removed",
		run: func(t *testContext) {
			done := t.deployValid()
			t.valid.setOperation(lsv1alpha1.TestReconcileOperation)
			t.valid.waitUntil("finish another job", func(di item) bool {
				return di.Status.JobID != done.Status.JobID && di.Status.JobID == di.Status.JobIDFinished && di.Status.Phase == phases.Succeeded
			})
			t.valid.waitForOperationRemoved()
		},
	},
	{
		Name: "unchanged", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of an unchanged item ends in one write, without a run",
		run: func(t *testContext) {
			done := t.deployValid(updateOnChangeOnly)
			t.valid.requestRun()
			t.valid.requireSucceeded()
			for _, di := range t.listVersionsAfter(done) {
				t.require(di.Status.Phase == phases.Succeeded, "the item showed phase %q", di.Status.Phase)
			}
			n := countWrites(append([]item{done}, t.listVersionsAfter(done)...)) - 1
			t.require(n <= maxWritesUnchangedJob, "the job cost %d writes", n)
		},
	},
	{
		Name: "changed", Rows: "[C15, L27]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of a changed item runs",
		run: func(t *testContext) {
			done := t.deployValid(updateOnChangeOnly)
			t.valid.patch(withTimeout(contract.DefaultTimeout + time.Second))
			t.valid.requestRun()
			t.valid.requireSucceeded()
			t.requireStartedAfter(done)
		},
	},
}

func updateOnChangeOnly(di item) { di.Spec.UpdateOnChangeOnly = true }

var responsibilityChecks = []Check{
	{
		Name: "other-type", Rows: "[C1, L24, L25]", Promise: "an item of another type is never written",
		run: func(t *testContext) {
			t.foreign.ignoreInCleanup()
			t.foreign.createAndTrigger(t.setOtherType)
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "other-type-deleted", Rows: "[C1, L25]", Promise: "an item of another type is not written when it is deleted",
		run: func(t *testContext) {
			t.foreign.ignoreInCleanup()
			t.foreign.create(t.setOtherType, t.addFinalizer)
			t.foreign.delete()
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "type-annotation", Rows: "[C1, L24, L25]", Revision: contract.RevisionJobID,
		Promise: "the type of an item is that of its spec, whatever the annotation deployer-type says",
		run: func(t *testContext) {
			t.foreign.ignoreInCleanup()
			t.foreign.create(t.setOtherType)
			t.foreign.patch(withAnnotation(lsv1alpha1.DeployerTypeAnnotation, string(t.env.subject.Type)))
			t.foreign.requestRun()
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "other-target", Rows: "[C2, L24, L25]", Promise: "an item whose Target does not match the selectors is never written", needs: []need{needsOtherTarget},
		run: func(t *testContext) {
			t.makeTarget("other", t.env.subject.OtherTargetLabels)
			t.foreign.ignoreInCleanup()
			t.foreign.createAndTrigger(withTarget("other"))
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "target-missing", Rows: "[C2, Lx9]", Promise: "an item without its Target reports that and does not succeed; when the Target exists again, it succeeds", needs: []need{needsTarget},
		run: func(t *testContext) {
			done := t.deployValid()
			t.valid.waitForOperationRemoved()
			t.removeTarget()
			t.valid.requestRun()
			t.valid.waitUntil("report its missing Target", func(di item) bool {
				return di.Status.LastError != nil || di.ResourceVersion != done.ResourceVersion && di.Status.Phase == phases.Failed
			})
			for _, di := range t.listVersionsAfter(done) {
				succeeded := di.Status.Phase == phases.Succeeded && t.usesJobs() && di.Status.JobIDFinished != done.Status.JobIDFinished
				t.require(!succeeded, "the item succeeded without its Target")
			}
			t.makeTarget(targetName, t.env.subject.TargetLabels)
			if contract.IsFinal(t.valid.get().Status.Phase) {
				t.valid.requestRun()
			}
			t.valid.waitUntil("succeed", func(di item) bool { return di.Status.Phase == phases.Succeeded && di.Status.LastError == nil })
		},
	},
}

var restartChecks = []Check{
	{
		Name: "resume", Rows: "[C14]", Promise: "a run continues after the deployer was killed, and does not begin again", needs: []need{needsSlow},
		run: func(t *testContext) {
			running := t.deploySlow()
			t.restartAndWait()
			t.requireRunContinues(running)
			di := t.slow.allowSuccessAndWait()
			t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, formatError(di))
			if t.usesJobs() {
				t.require(di.Status.JobIDFinished == running.Status.JobID, "the deployer finished another job, with the ID %q", di.Status.JobIDFinished)
				t.requireSameRun(running) // in the annotation revision, the call of Finish may itself request a run
			}
		},
	},
	{
		Name: "handed-out-meanwhile", Rows: "[C3, C14]", Promise: "a request that arrives while no deployer runs is processed later",
		run: func(t *testContext) {
			t.restartDuring(func() { t.valid.createAndTrigger() })
			di := t.valid.waitFor(t.getBounds().Start, "finish", isFinal)
			t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, formatError(di))
		},
	},
	{
		Name: "restart-rests", Rows: "[C8, L29]", Promise: "a finished item is not written after a restart",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.waitUntilUnchanged()
			done := t.valid.get()
			t.restartAndWait()
			t.requireUnchanged(done)
		},
	},
}
