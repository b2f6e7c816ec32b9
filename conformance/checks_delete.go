// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

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
			p.uninstalled("valid")
		},
	},
	{
		Name: "deletion-waits", Rows: "[C3, C13]", Revision: contract.RevisionJobID, Promise: "a deletion waits for its job",
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
		Name: "without-uninstall", Rows: "[C12]", Revision: contract.RevisionJobID, needs: []need{needsDeployed},
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
		Name: "without-uninstall-target", Rows: "[C12]", Revision: contract.RevisionJobID, needs: []need{needsTarget},
		Promise: "delete-without-uninstall needs no Target",
		run: func(p *probe) {
			p.succeeds()
			p.removeTarget()
			p.change(withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
			p.delete("valid")
			p.gone("valid")
		},
	},
	{
		Name: "delete-undeployed", Rows: "[C13, L33]", Promise: "an item that never had a run can be deleted", alone: true,
		run: func(p *probe) {
			p.restart(func() {
				p.make("valid", p.subject.Valid, p.withFinalizer)
				p.delete("valid")
			})
			p.goneWithin(p.subject.Bounds.Start, "valid")
			p.uninstalled("valid")
		},
	},
	{
		Name: "foreign-finalizer", Rows: "[C13, Lx6]", Promise: "a deleted item that others hold loses Landscaper's finalizer only, and is then left alone",
		run: func(p *probe) {
			p.succeeds()
			p.change(func(di item) { controllerutil.AddFinalizer(di, foreignFinalizer) })
			p.delete("valid")
			di := p.until("valid", "rid of Landscaper's finalizer", func(di item) bool { return !contract.HasOurFinalizer(di) })
			p.hold(slices.Equal(di.Finalizers, []string{foreignFinalizer}), "the finalizers are %q", di.Finalizers)
			p.quiet(di)
			p.change(func(di item) { controllerutil.RemoveFinalizer(di, foreignFinalizer) })
			p.gone("valid")
		},
	},
}

// foreignFinalizer is one that is none of the deployer's business.
const foreignFinalizer = "conformance.deployerkit.dev/held"

// withFinalizer puts Landscaper's finalizer on an item, where Landscaper does not do so itself.
func (p *probe) withFinalizer(di item) {
	if !p.jobs() {
		controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer)
	}
}

// uninstalled holds that nothing is left of an item that is gone, if the subject can tell.
func (p *probe) uninstalled(name string) {
	if p.subject.Deployed != nil {
		p.hold(!p.deployed(name), "the item is gone, and what it deployed is still there")
	}
}
