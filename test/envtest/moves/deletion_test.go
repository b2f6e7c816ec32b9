// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// waitForError waits until the item shows an error and has the given phase.
func (w *env) waitForError(ctx context.Context, phase lsv1alpha1.DeployItemPhase) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		di := w.ReadItem(ctx, "item")(g)
		g.Expect(di.Status.LastError).NotTo(BeNil())
		g.Expect(di.Status.Phase).To(Equal(phase))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}

var _ = Describe("Deletion of an item whose target does not respond", func() {
	for _, k := range kinds {
		Context("of the deployer "+k.name, func() {
			It("ends at once if the item never had objects [F37]", func(ctx SpecContext) {
				w := newWorld(ctx, k, setup{})
				w.CreateTarget(ctx, "gone", newUnreachableKubeconfig())
				w.Create(ctx, "item", k.config(w, false), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "gone" })
				w.waitForError(ctx, lsv1alpha1.DeployItemPhases.Init)
				w.Manager.Stop()
				w.start()
				w.Delete(ctx, "item")
			}, SpecTimeout(5*time.Minute))

			It("waits for the target if the inventory was lost [F37]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.Manager.Stop()
				w.RemoveProviderStatus(ctx, "item")
				w.start()
				w.setKubeconfig(ctx, world.Cluster, newUnreachableKubeconfig())
				Expect(w.Landscaper.MarkForDeletion(ctx, w.Key("item"))).To(Succeed())
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				w.waitForError(ctx, lsv1alpha1.DeployItemPhases.InitDelete)
				w.setKubeconfig(ctx, world.Cluster, here.Kubeconfig())
				Expect(w.Landscaper.WaitForDeletion(ctx, w.Key("item"))).To(Succeed())
				Expect(w.getUID(ctx, w.Client)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("ends at once if an earlier configuration was invalid [F37]", func(ctx SpecContext) {
		w := newWorld(ctx, kinds[0], setup{})
		w.CreateTarget(ctx, "gone", newUnreachableKubeconfig())
		invalid := map[string]any{"apiVersion": "manifest.deployer.landscaper.gardener.cloud/v1alpha2", "kind": "Unknown"}
		di := w.CreateAndRun(ctx, "item", invalid, func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "gone" })
		Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
		Expect(w.Landscaper.Update(ctx, w.Key("item"), manifestConfig(w, false))).To(Succeed())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})
