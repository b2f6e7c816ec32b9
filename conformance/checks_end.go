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
			t.working()
			t.slow.operate(contract.AbortOperation)
			di := t.slow.until("fail", func(di item) bool { return di.Status.Phase == phases.Failed })
			t.require(di.Status.LastError != nil, "the item failed without lastError")
			t.slow.notAborting()
		},
	},
	{
		Name: "abort-late", Rows: "[C6, L30, Lx7]", Promise: "an abort that arrives after the end of the run has no effect, and its annotation is removed",
		run: func(t *testContext) {
			done := t.succeeds()
			t.valid.settled()
			t.valid.operate(contract.AbortOperation)
			t.valid.notAborting()
			for _, di := range t.after(done) {
				t.require(di.Status.Phase == phases.Succeeded, "the item showed phase %q", di.Status.Phase)
			}
		},
	},
	{
		Name: "interrupt", Rows: "[C4]", Revision: contract.RevisionJobID, needs: []need{needsSlow},
		Promise: "a job that Landscaper has ended does not continue, and the next job runs",
		run: func(t *testContext) {
			running := t.working()
			t.slow.interrupt()
			t.later()
			t.slow.comesToRest()
			di := t.slow.get()
			t.require(di.Status.Phase == phases.Failed && di.Status.JobIDFinished == running.Status.JobID, "the phase of the item became %q%s", di.Status.Phase, errorOf(di))
			t.require(di.Status.LastError != nil && di.Status.LastError.Reason == "InterruptOperation", "Landscaper's error was overwritten%s", errorOf(di))
			t.slow.trigger()
			t.slow.until("get back in progress", func(di item) bool { return isWorking(di.Status.Phase) })
		},
	},
	{
		Name: "force-reconcile", Rows: "[L32, Lx8]", Promise: "force-reconcile on a finished item starts a run, and its annotation is removed",
		run: func(t *testContext) {
			done := t.succeeds()
			t.valid.settled()
			t.valid.operate(lsv1alpha1.ForceReconcileOperation)
			t.valid.settled()
			di := t.valid.succeeded()
			if t.jobs() {
				t.require(di.Status.JobID == done.Status.JobID, "the job ID became %q", di.Status.JobID)
				return
			}
			t.valid.until("reach a final phase", isFinal)
			shown := phasesOf(t.after(done))
			t.require(slices.ContainsFunc(shown, isWorking), "no run began; the phases of the item were %q", shown)
		},
	},
}

var optionChecks = []Check{
	{
		Name: "ignore", Rows: "[C8]", Promise: "a finished item with the annotation ignore is not written, whatever is requested; without the annotation the request is processed",
		run: func(t *testContext) {
			t.succeeds()
			t.valid.settled()
			t.valid.change(withAnnotation(lsv1alpha1.IgnoreAnnotation, "true"))
			t.valid.trigger()
			t.requireNoWrites(t.valid.get())
			t.valid.change(withAnnotation(lsv1alpha1.IgnoreAnnotation, "false"))
			t.valid.succeeded()
		},
	},
	{
		Name: "test-reconcile", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "test-reconcile on a finished item creates its own job, and its annotation is removed",
		run: func(t *testContext) {
			done := t.succeeds()
			t.valid.operate(lsv1alpha1.TestReconcileOperation)
			t.valid.until("finish another job", func(di item) bool {
				return di.Status.JobID != done.Status.JobID && di.Status.JobID == di.Status.JobIDFinished && di.Status.Phase == phases.Succeeded
			})
			t.valid.settled()
		},
	},
	{
		Name: "unchanged", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of an unchanged item ends in one write, without a run",
		run: func(t *testContext) {
			done := t.succeeds(updateOnChangeOnly)
			t.valid.trigger()
			t.valid.succeeded()
			for _, di := range t.after(done) {
				t.require(di.Status.Phase == phases.Succeeded, "the item showed phase %q", di.Status.Phase)
			}
			n := writes(append([]item{done}, t.after(done)...)) - 1
			t.require(n <= anUnchangedJob, "the job cost %d writes", n)
		},
	},
	{
		Name: "changed", Rows: "[C15, L27]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of a changed item runs",
		run: func(t *testContext) {
			done := t.succeeds(updateOnChangeOnly)
			t.valid.change(withTimeout(contract.DefaultTimeout + time.Second))
			t.valid.trigger()
			t.valid.succeeded()
			t.beganAfter(done)
		},
	},
}

func updateOnChangeOnly(di item) { di.Spec.UpdateOnChangeOnly = true }

var responsibilityChecks = []Check{
	{
		Name: "other-type", Rows: "[C1, L24, L25]", Promise: "an item of another type is never written",
		run: func(t *testContext) {
			t.foreign.leaveAlone()
			t.foreign.deploy(t.otherType)
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "other-type-deleted", Rows: "[C1, L25]", Promise: "an item of another type is not written when it is deleted",
		run: func(t *testContext) {
			t.foreign.leaveAlone()
			t.foreign.create(t.otherType, t.withFinalizer)
			t.foreign.delete()
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "type-annotation", Rows: "[C1, L24, L25]", Revision: contract.RevisionJobID,
		Promise: "the type of an item is that of its spec, whatever the annotation deployer-type says",
		run: func(t *testContext) {
			t.foreign.leaveAlone()
			t.foreign.create(t.otherType)
			t.foreign.change(withAnnotation(lsv1alpha1.DeployerTypeAnnotation, string(t.env.subject.Type)))
			t.foreign.trigger()
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "other-target", Rows: "[C2, L24, L25]", Promise: "an item whose Target does not match the selectors is never written", needs: []need{needsOtherTarget},
		run: func(t *testContext) {
			t.makeTarget("other", t.env.subject.OtherTargetLabels)
			t.foreign.leaveAlone()
			t.foreign.deploy(withTarget("other"))
			t.requireNoWrites(t.foreign.get())
		},
	},
	{
		Name: "target-missing", Rows: "[C2, Lx9]", Promise: "an item without its Target reports that and does not succeed; when the Target exists again, it succeeds", needs: []need{needsTarget},
		run: func(t *testContext) {
			done := t.succeeds()
			t.valid.settled()
			t.removeTarget()
			t.valid.trigger()
			t.valid.until("report its missing Target", func(di item) bool {
				return di.Status.LastError != nil || di.ResourceVersion != done.ResourceVersion && di.Status.Phase == phases.Failed
			})
			for _, di := range t.after(done) {
				succeeded := di.Status.Phase == phases.Succeeded && t.jobs() && di.Status.JobIDFinished != done.Status.JobIDFinished
				t.require(!succeeded, "the item succeeded without its Target")
			}
			t.makeTarget(targetName, t.env.subject.TargetLabels)
			if contract.IsFinal(t.valid.get().Status.Phase) {
				t.valid.trigger()
			}
			t.valid.until("succeed", func(di item) bool { return di.Status.Phase == phases.Succeeded && di.Status.LastError == nil })
		},
	},
}

var restartChecks = []Check{
	{
		Name: "resume", Rows: "[C14]", Promise: "a run continues after the deployer was killed, and does not begin again", needs: []need{needsSlow},
		run: func(t *testContext) {
			running := t.working()
			t.restartToLook()
			t.goesOn(running)
			di := t.slow.finish()
			t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, errorOf(di))
			if t.jobs() {
				t.require(di.Status.JobIDFinished == running.Status.JobID, "the deployer finished another job, with the ID %q", di.Status.JobIDFinished)
				t.sameRun(running) // in the annotation revision, the call of Finish may itself request a run
			}
		},
	},
	{
		Name: "handed-out-meanwhile", Rows: "[C3, C14]", Promise: "a request that arrives while no deployer runs is processed later",
		run: func(t *testContext) {
			t.restart(func() { t.valid.deploy() })
			di := t.valid.await(t.bounds().Start, "finish", isFinal)
			t.require(di.Status.Phase == phases.Succeeded, "the item ended as %q%s", di.Status.Phase, errorOf(di))
		},
	},
	{
		Name: "restart-rests", Rows: "[C8, L29]", Promise: "a finished item is not written after a restart",
		run: func(t *testContext) {
			t.succeeds()
			t.valid.comesToRest()
			done := t.valid.get()
			t.restartToLook()
			t.requireUnchanged(done)
		},
	},
}
