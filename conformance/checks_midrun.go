// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/deployerkit/deployerkit/contract"
)

// midrunChecks are about what is asked of an item while it is in work.
var midrunChecks = []Check{
	{
		Name: "deletion-midrun", Rows: "[C13, L33]", Promise: "an item that is deleted in the middle of its run goes, and what it deployed", needs: []need{needsSlow},
		run: func(p *probe) {
			p.working()
			p.must(p.ls.Mark(p.ctx, p.key("slow")))
			p.letFinish("slow")
			if p.jobs() {
				p.finishedOrGone("slow")
				p.delete("slow")
			}
			p.gone("slow")
			p.uninstalled("slow")
		},
	},
	{
		Name: "abort-deletion", Rows: "[C4, C6, L30, L35]", Promise: "an abort goes before a deletion, which is done next", needs: []need{needsSlow}, alone: true,
		run: func(p *probe) {
			p.working()
			p.restart(func() {
				p.operate("slow", contract.AbortOperation)
				p.must(p.ls.Mark(p.ctx, p.key("slow")))
			})
			if p.jobs() {
				p.goneOr(p.subject.Bounds.Start, "slow", func(di item) bool {
					return hasFailed(di) && di.Annotations[lsv1alpha1.OperationAnnotation] == ""
				})
				p.delete("slow")
			}
			p.goneWithin(p.subject.Bounds.Start, "slow")
			aborted := slices.ContainsFunc(p.history.Versions("slow"), func(di item) bool {
				return di.DeletionTimestamp != nil && hasFailed(di) && di.Status.LastError != nil
			})
			p.hold(aborted, "the abort was passed over")
		},
	},
	{
		Name: "reconcile-midrun", Rows: "[C3, L28]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "the operation reconcile begins a run again that is in work, and is removed",
		run: func(p *probe) {
			running := p.working()
			p.operate("slow", lsv1alpha1.ReconcileOperation)
			p.settled("slow")
			p.until("slow", "in work again", func(di item) bool {
				return contract.IsFinal(di.Status.Phase) || slices.Contains(phasesOf(p.after(running)), phases.Init)
			})
			p.beganAfter(running)
		},
	},
	{
		Name: "generation-midrun", Rows: "[C7, L27]", Revision: contract.RevisionAnnotation, needs: []need{needsSlow},
		Promise: "a changed spec begins a run again that is in work",
		run: func(p *probe) {
			running := p.working()
			p.changeOf("slow", withTimeout(contract.DefaultTimeout+time.Second))
			p.until("slow", "observed in its new generation", func(di item) bool { return di.Status.ObservedGeneration == di.Generation })
			p.beganAfter(running)
		},
	},
}

// hasFailed tells that a run or a deletion ended badly.
func hasFailed(di item) bool {
	return di.Status.Phase == phases.Failed || di.Status.Phase == phases.DeleteFailed
}

// finishedOrGone waits until the job of an item ended, or the item is not there any more.
func (p *probe) finishedOrGone(name string) {
	p.goneOr(p.subject.Bounds.Finish, name, func(di item) bool { return di.Status.JobID == di.Status.JobIDFinished })
}

// letFinish lets a slow item end that may be gone already.
func (p *probe) letFinish(name string) {
	if p.subject.Finish == nil {
		return
	}
	if err := p.subject.Finish(p.ctx, p.client, p.key(name)); !apierrors.IsNotFound(err) {
		p.must(err)
	}
}
