// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
)

var deletionChecks = []Check{
	{
		Name: "delete", Rows: "[C13, L33]", Promise: "a deleted item goes",
		run: func(p *probe) {
			p.succeeds()
			p.delete("valid")
			p.gone("valid")
		},
	},
	{
		Name: "delete-phases", Rows: "[C9]", Promise: "a deletion that is at work shows the phase of a run",
		run: func(p *probe) {
			p.succeeds()
			p.delete("valid")
			p.gone("valid")
			var shown []lsv1alpha1.DeployItemPhase
			for _, di := range p.history.Versions("valid") {
				if di.DeletionTimestamp != nil {
					shown = append(shown, di.Status.Phase)
				}
			}
			p.hold(slices.ContainsFunc(shown, isWorking), "it showed %q only", slices.Compact(shown))
			if p.jobs() {
				ok := slices.Contains(shown, phases.InitDelete) || slices.Contains(shown, phases.Deleting)
				p.hold(ok, "it showed neither InitDelete nor Deleting, only %q", slices.Compact(shown))
			}
		},
	},
	{
		Name: "uninstall", Rows: "[C13, L33]", Promise: "an item is gone only after what it deployed", needs: []need{needsDeployed},
		run: func(p *probe) {
			p.succeeds()
			p.hold(p.deployed("valid"), "a valid item succeeded, and nothing is deployed")
			p.delete("valid")
			p.gone("valid")
			p.hold(!p.deployed("valid"), "the item is gone, and what it deployed is still there")
		},
	},
	{
		Name: "deletion-waits", Rows: "[C3, C13]", Revision: contract.JobID, Promise: "a deletion waits for its job",
		run: func(p *probe) {
			p.succeeds()
			p.must(p.ls.Mark(p.ctx, p.key("valid")))
			p.quiet(p.get("valid"))
			p.trigger("valid")
			p.gone("valid")
		},
	},
	{
		Name: "delete-failed-item", Rows: "[C13]", Promise: "an item that failed can be deleted", needs: []need{needsInvalid},
		run: func(p *probe) {
			p.failsInvalid("conformance")
			p.delete("invalid")
			p.gone("invalid")
		},
	},
	{
		Name: "without-uninstall", Rows: "[C12]", Revision: contract.JobID, needs: []need{needsDeployed},
		Promise: "delete-without-uninstall removes the finalizer and leaves what is deployed",
		run: func(p *probe) {
			p.succeeds()
			p.change(withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
			p.delete("valid")
			p.gone("valid")
			p.hold(p.deployed("valid"), "what was deployed is gone")
		},
	},
	{
		Name: "without-uninstall-target", Rows: "[C12]", Revision: contract.JobID, needs: []need{needsTarget},
		Promise: "delete-without-uninstall needs no Target",
		run: func(p *probe) {
			p.succeeds()
			p.removeTarget()
			p.change(withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
			p.delete("valid")
			p.gone("valid")
		},
	},
}

var cancelChecks = []Check{
	{
		Name: "abort", Rows: "[C4, C6, L31]", Promise: "an abort ends a run as Failed and is removed", needs: []need{needsSlow},
		run: func(p *probe) {
			p.working()
			p.operate("slow", contract.AbortOperation)
			di := p.until("slow", "failed", func(di item) bool { return di.Status.Phase == phases.Failed })
			p.hold(di.Status.LastError != nil, "it failed without lastError")
			p.notAborting("slow")
		},
	},
	{
		Name: "abort-late", Rows: "[C6, L30, Lx7]", Promise: "an abort that finds the run ended is only removed",
		run: func(p *probe) {
			done := p.succeeds()
			p.settled("valid")
			p.operate("valid", contract.AbortOperation)
			p.notAborting("valid")
			for _, di := range p.after(done) {
				p.hold(di.Status.Phase == phases.Succeeded, "it showed phase %q", di.Status.Phase)
			}
		},
	},
	{
		Name: "interrupt", Rows: "[C4]", Revision: contract.JobID, needs: []need{needsSlow},
		Promise: "a job that Landscaper ended stays ended, and the next one runs",
		run: func(p *probe) {
			running := p.working()
			p.must(p.ls.Interrupt(p.ctx, p.key("slow")))
			p.settles("slow")
			di := p.get("slow")
			p.hold(di.Status.Phase == phases.Failed && di.Status.JobIDFinished == running.Status.JobID, "it became %q%s", di.Status.Phase, errorOf(di))
			p.hold(di.Status.LastError != nil && di.Status.LastError.Reason == "InterruptOperation", "Landscaper's error was overwritten%s", errorOf(di))
			p.trigger("slow")
			p.until("slow", "in work again", func(di item) bool { return isWorking(di.Status.Phase) })
		},
	},
	{
		Name: "force-reconcile", Rows: "[L32, Lx8]", Promise: "force-reconcile on a finished item is obeyed and removed",
		run: func(p *probe) {
			done := p.succeeds()
			p.settled("valid")
			p.operate("valid", lsv1alpha1.ForceReconcileOperation)
			p.settled("valid")
			di := p.succeededAgain("valid")
			if p.jobs() {
				p.hold(di.Status.JobID == done.Status.JobID, "the job ID became %q", di.Status.JobID)
				return
			}
			p.until("valid", "final", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
			shown := phasesOf(p.after(done))
			p.hold(slices.ContainsFunc(shown, isWorking), "no run was begun, it showed %q", shown)
		},
	},
}

// notAborting waits until the annotations of an abort are gone.
func (p *probe) notAborting(name string) {
	p.until(name, "rid of operation and abort-time", func(di item) bool {
		_, operation := di.Annotations[lsv1alpha1.OperationAnnotation]
		_, since := di.Annotations[contract.AbortTimestampAnnotation]
		return !operation && !since
	})
}

// settles waits until an item is not written any more.
func (p *probe) settles(name string) {
	last := ""
	p.g.Eventually(p.ctx, func() bool {
		now := p.get(name).ResourceVersion
		same := now == last
		last = now
		return same
	}).WithPolling(p.subject.Bounds.Quiet).WithTimeout(p.subject.Bounds.Finish).Should(gomega.BeTrue(), "the item does not come to rest")
}

// removeTarget deletes the Target of the items.
func (p *probe) removeTarget() {
	target := &lsv1alpha1.Target{}
	target.Namespace, target.Name = p.ns, targetName
	p.must(p.client.Delete(p.ctx, target))
}

var optionChecks = []Check{
	{
		Name: "test-reconcile", Rows: "[C15]", Revision: contract.JobID, Promise: "test-reconcile on a finished item makes a job of its own and is removed",
		run: func(p *probe) {
			done := p.succeeds()
			p.operate("valid", lsv1alpha1.TestReconcileOperation)
			p.until("valid", "finished with another job", func(di item) bool {
				return di.Status.JobID != done.Status.JobID && di.Status.JobID == di.Status.JobIDFinished && di.Status.Phase == phases.Succeeded
			})
			p.settled("valid")
		},
	},
	{
		Name: "unchanged", Rows: "[C15]", Revision: contract.JobID, Promise: "with updateOnChangeOnly the job of an unchanged item ends without a run",
		run: func(p *probe) {
			done := p.succeeds(updateOnChangeOnly)
			p.trigger("valid")
			p.succeededAgain("valid")
			for _, di := range p.after(done) {
				p.hold(di.Status.Phase == phases.Succeeded, "it showed phase %q", di.Status.Phase)
			}
		},
	},
	{
		Name: "changed", Rows: "[C15, L27]", Revision: contract.JobID, Promise: "with updateOnChangeOnly the job of a changed item runs",
		run: func(p *probe) {
			done := p.succeeds(updateOnChangeOnly)
			p.change(withTimeout(contract.DefaultTimeout + time.Second))
			p.trigger("valid")
			p.succeededAgain("valid")
			p.beganAfter(done)
		},
	},
}

func updateOnChangeOnly(di item) { di.Spec.UpdateOnChangeOnly = true }

var responsibilityChecks = []Check{
	{
		Name: "other-type", Rows: "[C1, L24, L25]", Promise: "an item of another type is never written",
		run: func(p *probe) {
			p.foreign["foreign"] = true
			p.deploy("foreign", p.subject.Valid, func(di item) { di.Spec.Type = p.subject.Type + "-other" })
			p.quiet(p.get("foreign"))
		},
	},
	{
		Name: "other-target", Rows: "[C2, L24, L25]", Promise: "an item whose Target the selectors do not match is never written", needs: []need{needsOtherTarget},
		run: func(p *probe) {
			p.must(p.makeTarget("other", p.subject.OtherTargetLabels))
			p.foreign["foreign"] = true
			p.deploy("foreign", p.subject.Valid, withTarget("other"))
			p.quiet(p.get("foreign"))
		},
	},
	{
		Name: "target-missing", Rows: "[C2, Lx9]", Promise: "an item whose Target is gone says so and does not succeed; with the Target back it does", needs: []need{needsTarget},
		run: func(p *probe) {
			done := p.succeeds()
			p.settled("valid")
			p.removeTarget()
			p.trigger("valid")
			p.until("valid", "telling about its Target", func(di item) bool {
				return di.Status.LastError != nil || di.ResourceVersion != done.ResourceVersion && di.Status.Phase == phases.Failed
			})
			for _, di := range p.after(done) {
				succeeded := di.Status.Phase == phases.Succeeded && p.jobs() && di.Status.JobIDFinished != done.Status.JobIDFinished
				p.hold(!succeeded, "it succeeded without its Target")
			}
			p.must(p.makeTarget(targetName, p.subject.TargetLabels))
			if contract.IsFinal(p.get("valid").Status.Phase) {
				p.trigger("valid")
			}
			p.until("valid", "succeeded", func(di item) bool { return di.Status.Phase == phases.Succeeded && di.Status.LastError == nil })
		},
	},
}

var restartChecks = []Check{
	{
		Name: "resume", Rows: "[C14]", Promise: "a run goes on after the deployer was killed, and is not begun again", needs: []need{needsSlow},
		run: func(p *probe) {
			running := p.working()
			p.restart(nil)
			p.deploy("later", p.subject.Valid)
			p.await(p.subject.Bounds.Start, "later", "finished", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
			for _, di := range p.after(running) {
				p.hold(di.Status.Phase == phases.Progressing, "it showed phase %q after the restart", di.Status.Phase)
				p.hold(di.Status.LastReconcileTime.Equal(running.Status.LastReconcileTime), "lastReconcileTime was %v and became %v",
					running.Status.LastReconcileTime, di.Status.LastReconcileTime)
			}
			di := p.finish("slow")
			p.hold(di.Status.Phase == phases.Succeeded, "it ended as %q%s", di.Status.Phase, errorOf(di))
			if p.jobs() {
				p.hold(di.Status.JobIDFinished == running.Status.JobID, "another job was finished: %q", di.Status.JobIDFinished)
			}
		},
	},
	{
		Name: "handed-out-meanwhile", Rows: "[C3, C14]", Promise: "what was asked for while no deployer ran is done later",
		run: func(p *probe) {
			p.restart(func() { p.deploy("valid", p.subject.Valid) })
			di := p.await(p.subject.Bounds.Start, "valid", "finished", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
			p.hold(di.Status.Phase == phases.Succeeded, "it ended as %q%s", di.Status.Phase, errorOf(di))
		},
	},
	{
		Name: "restart-rests", Rows: "[C8, L29]", Promise: "a finished item is not written after a restart",
		run: func(p *probe) {
			p.succeeds()
			p.settles("valid")
			done := p.get("valid")
			p.restart(nil)
			p.quiet(done)
		},
	},
}
