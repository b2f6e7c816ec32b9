// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/contract"
)

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
		Name: "interrupt", Rows: "[C4]", Revision: contract.RevisionJobID, needs: []need{needsSlow},
		Promise: "a job that Landscaper ended stays ended, and the next one runs",
		run: func(p *probe) {
			running := p.working()
			p.must(p.ls.Interrupt(p.ctx, p.key("slow")))
			p.later()
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
		Name: "ignore", Rows: "[C8]", Promise: "a finished item with the annotation ignore is not written, whatever is asked; without it that is done",
		run: func(p *probe) {
			p.succeeds()
			p.settled("valid")
			p.change(withAnnotation(lsv1alpha1.IgnoreAnnotation, "true"))
			p.trigger("valid")
			p.quiet(p.get("valid"))
			p.change(withAnnotation(lsv1alpha1.IgnoreAnnotation, "false"))
			p.succeededAgain("valid")
		},
	},
	{
		Name: "test-reconcile", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "test-reconcile on a finished item makes a job of its own and is removed",
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
		Name: "unchanged", Rows: "[C15]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of an unchanged item ends in one write, without a run",
		run: func(p *probe) {
			done := p.succeeds(updateOnChangeOnly)
			p.trigger("valid")
			p.succeededAgain("valid")
			for _, di := range p.after(done) {
				p.hold(di.Status.Phase == phases.Succeeded, "it showed phase %q", di.Status.Phase)
			}
			n := writes(append([]item{done}, p.after(done)...)) - 1
			p.hold(n <= anUnchangedJob, "it cost %d writes", n)
		},
	},
	{
		Name: "changed", Rows: "[C15, L27]", Revision: contract.RevisionJobID, Promise: "with updateOnChangeOnly the job of a changed item runs",
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
			p.deploy("foreign", p.subject.Valid, p.otherType)
			p.quiet(p.get("foreign"))
		},
	},
	{
		Name: "other-type-deleted", Rows: "[C1, L25]", Promise: "an item of another type is not written when it is deleted either",
		run: func(p *probe) {
			p.foreign["foreign"] = true
			p.make("foreign", p.subject.Valid, p.otherType, p.withFinalizer)
			p.delete("foreign")
			p.quiet(p.get("foreign"))
		},
	},
	{
		Name: "type-annotation", Rows: "[C1, L24, L25]", Revision: contract.RevisionJobID,
		Promise: "the type of an item is that of its spec, whatever the annotation deployer-type says",
		run: func(p *probe) {
			p.foreign["foreign"] = true
			p.make("foreign", p.subject.Valid, p.otherType)
			p.must(p.ls.Annotate(p.ctx, p.key("foreign"), map[string]string{lsv1alpha1.DeployerTypeAnnotation: string(p.subject.Type)}))
			p.trigger("foreign")
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

// restartToLook restarts the deployer and waits until it looks at what was there when it started: an item that was handed out
// meanwhile is finished. It may look at others after that one, so the caller has to wait a moment.
func (p *probe) restartToLook() {
	p.restart(func() { p.deploy("meanwhile", p.subject.Valid) })
	p.await(p.subject.Bounds.Start, "meanwhile", "finished", func(di item) bool { return contract.IsFinal(di.Status.Phase) })
}

// goesOn holds for a while that the run of an item is not begun again.
func (p *probe) goesOn(running item) {
	p.g.Consistently(p.ctx, func() bool {
		p.sameRun(running)
		return true
	}).WithTimeout(p.subject.Bounds.Quiet).WithPolling(50 * time.Millisecond).Should(gomega.BeTrue())
}

// sameRun holds that the run of an item was not begun again.
func (p *probe) sameRun(running item) {
	for _, di := range p.after(running) {
		p.hold(di.Status.Phase == phases.Progressing || contract.IsFinal(di.Status.Phase), "it showed phase %q after the restart", di.Status.Phase)
		p.hold(di.Status.LastReconcileTime.Equal(running.Status.LastReconcileTime), "lastReconcileTime was %v and became %v",
			running.Status.LastReconcileTime, di.Status.LastReconcileTime)
	}
}

// otherType gives an item a type that the subject is not responsible for.
func (p *probe) otherType(di item) { di.Spec.Type = p.subject.Type + "-other" }

var restartChecks = []Check{
	{
		Name: "resume", Rows: "[C14]", Promise: "a run goes on after the deployer was killed, and is not begun again", needs: []need{needsSlow},
		run: func(p *probe) {
			running := p.working()
			p.restartToLook()
			p.goesOn(running)
			di := p.finish("slow")
			p.hold(di.Status.Phase == phases.Succeeded, "it ended as %q%s", di.Status.Phase, errorOf(di))
			if p.jobs() {
				p.hold(di.Status.JobIDFinished == running.Status.JobID, "another job was finished: %q", di.Status.JobIDFinished)
				p.sameRun(running) // without jobs, what lets the item finish may begin a run
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
			p.restartToLook()
			p.still(done)
		},
	},
}
