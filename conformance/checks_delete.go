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
		Name: "delete", Rows: "[C13, L33]", Promise: "a deleted item is removed",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.delete()
			t.valid.waitForDeletion()
		},
	},
	{
		Name: "delete-phases", Rows: "[C9]", Promise: "an item that is being deleted shows that the deletion is in progress",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.delete()
			t.valid.waitForDeletion()
			var shown []lsv1alpha1.DeployItemPhase
			for _, di := range t.valid.getRecordedVersions() {
				if di.DeletionTimestamp != nil {
					shown = append(shown, di.Status.Phase)
				}
			}
			t.require(slices.ContainsFunc(shown, isWorking), "the only phases of the item were %q", slices.Compact(shown))
			if t.usesJobs() {
				ok := slices.Contains(shown, phases.InitDelete) || slices.Contains(shown, phases.Deleting)
				t.require(ok, "the phase of the item was neither InitDelete nor Deleting, only %q", slices.Compact(shown))
			}
		},
	},
	{
		Name: "uninstall", Rows: "[C13, L33]", Promise: "an item is removed only after its deployed objects", needs: []need{needsDeployed},
		run: func(t *testContext) {
			t.deployValid()
			t.require(t.valid.isDeployed(), "a valid item succeeded, but its objects do not exist")
			t.valid.delete()
			t.valid.waitForDeletion()
			t.valid.requireUninstalled()
		},
	},
	{
		Name: "deletion-waits", Rows: "[C3, C13]", Revision: contract.RevisionJobID, Promise: "a deletion waits for its job",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.markDeleted()
			t.requireNoWrites(t.valid.get())
			t.valid.requestRun()
			t.valid.waitForDeletion()
		},
	},
	{
		Name: "delete-failed-item", Rows: "[C13]", Promise: "an item that failed can be deleted", needs: []need{needsInvalid},
		run: func(t *testContext) {
			t.deployInvalid("conformance")
			t.invalid.delete()
			t.invalid.waitForDeletion()
		},
	},
	{
		Name: "without-uninstall", Rows: "[C12]", Revision: contract.RevisionJobID, needs: []need{needsDeployed},
		Promise: "delete-without-uninstall removes the finalizer and leaves the deployed objects",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.patch(withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
			t.valid.delete()
			t.valid.waitForDeletion()
			t.require(t.valid.isDeployed(), "the deployed objects are gone")
		},
	},
	{
		Name: "without-uninstall-target", Rows: "[C12]", Revision: contract.RevisionJobID, needs: []need{needsTarget},
		Promise: "delete-without-uninstall needs no Target",
		run: func(t *testContext) {
			t.deployValid()
			t.removeTarget()
			t.valid.patch(withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true"))
			t.valid.delete()
			t.valid.waitForDeletion()
		},
	},
	{
		Name: "delete-undeployed", Rows: "[C13, L33]", Promise: "an item that never had a run can be deleted", alone: true,
		run: func(t *testContext) {
			t.restartDuring(func() {
				t.valid.create(t.addFinalizer)
				t.valid.delete()
			})
			t.valid.waitForDeletionWithin(t.getBounds().Start)
			t.valid.requireUninstalled()
		},
	},
	{
		Name: "foreign-finalizer", Rows: "[C13, Lx6]", Promise: "a deleted item with other finalizers only loses Landscaper's finalizer, and is not written afterwards",
		run: func(t *testContext) {
			t.deployValid()
			t.valid.patch(func(di item) { controllerutil.AddFinalizer(di, foreignFinalizer) })
			t.valid.delete()
			di := t.valid.waitUntil("lose Landscaper's finalizer", func(di item) bool { return !contract.HasLandscaperFinalizer(di) })
			t.require(slices.Equal(di.Finalizers, []string{foreignFinalizer}), "the finalizers are %q", di.Finalizers)
			t.requireNoWrites(di)
			t.valid.patch(func(di item) { controllerutil.RemoveFinalizer(di, foreignFinalizer) })
			t.valid.waitForDeletion()
		},
	},
}

// foreignFinalizer is a finalizer that does not belong to the deployer.
const foreignFinalizer = "conformance.deployerkit.dev/held"
