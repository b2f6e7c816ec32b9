// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
	"github.com/deployerkit/deployerkit/upkeep"
)

// left returns a function for Eventually that reads the message of the condition FormerClusters. The function returns
// "" if there is no such condition.
func (w *env) left(ctx context.Context) func(Gomega) string {
	return func(g Gomega) string {
		condition := w.Condition(ctx, "item", upkeep.ConditionFormerClusters)(g)
		if condition == nil {
			return ""
		}
		return condition.Message
	}
}

// leaves waits until no object is left in a former cluster.
func (w *env) leaves(ctx context.Context) {
	GinkgoHelper()
	Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(BeEmpty())
}

// annotate sets an annotation of the item.
func (w *env) annotate(ctx context.Context, key, value string) {
	GinkgoHelper()
	di := w.Get(ctx, "item")
	patch := client.MergeFrom(di.DeepCopy())
	if di.Annotations == nil {
		di.Annotations = map[string]string{}
	}
	di.Annotations[key] = value
	Expect(w.Client.Patch(ctx, di, patch)).To(Succeed())
}

var _ = Describe("an item that moves to another cluster", func() {
	for _, k := range kinds {
		Context("of the deployer "+k.name, func() {
			It("is deployed there, cleaned up in the old one, and deleted from the new one [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.succeeds(w.move(ctx, other))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
				w.Delete(ctx, "item")
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("loses nothing in the old cluster before the new deployment has succeeded [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.moveGated(ctx, other, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "while the item waits")
				Expect(w.Landscaper.Interrupt(ctx, w.Key("item"))).To(Succeed())
				w.runsAgain(ctx, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "after background runs")
				w.Manager.Stop()
				w.start()
				w.runsAgain(ctx, inThere)
				Expect(w.in(ctx, w.Client)).To(Equal(before), "after a restart")
				w.edit(ctx, inThere, "ready", "true")
				w.succeeds(w.Again(ctx, "item"))
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
			}, SpecTimeout(5*time.Minute))

			It("is cleaned up when the old cluster answers again, also after a restart [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.point(ctx, world.Cluster, nowhere())
				w.succeeds(w.move(ctx, other))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				w.point(ctx, world.Cluster, here.Kubeconfig())
				w.Manager.Stop()
				w.start()
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("keeps a deletion waiting for the old cluster until an annotation releases it [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.aim(ctx, other)
				Expect(w.Client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metaOf(w, world.Cluster)})).To(Succeed())
				w.succeeds(w.Again(ctx, "item"))
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("does not exist any more"))
				Expect(w.Landscaper.Mark(ctx, w.Key("item"))).To(Succeed())
				_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				w.awaitGone(ctx, inThere)
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("Target cluster: 1 objects"))
				w.annotate(ctx, upkeep.ReleaseAnnotation, "true")
				Eventually(func() error { return w.Client.Get(ctx, w.Key("item"), &lsv1alpha1.DeployItem{}) }).WithContext(ctx).
					WithTimeout(world.Patience).ShouldNot(Succeed())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("is deployed again when it moves back [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.succeeds(w.move(ctx, other))
				w.succeeds(w.move(ctx, world.Cluster))
				w.awaitGone(ctx, inThere)
				w.leaves(ctx)
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("loses nothing by a wrong Target that is corrected [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.CreateTarget(ctx, "wrong", []byte(`{}`))
				Expect(w.move(ctx, "wrong").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Failed))
				w.succeeds(w.move(ctx, world.Cluster))
				Expect(w.in(ctx, w.Client)).To(Equal(before))
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("waits for nothing if its Target leads to another cluster now [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.point(ctx, world.Cluster, there.Kubeconfig())
				w.succeeds(w.Again(ctx, "item"))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
				w.Delete(ctx, "item")
				Expect(w.in(ctx, inThere)).To(BeEmpty())
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("is deployed only after the old cluster is cleaned up, if this comes first [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{cleanUpFirst: true})
				w.hold(ctx, `["example.com/hold"]`)
				w.aim(ctx, other)
				job, err := w.Landscaper.Trigger(ctx, w.Key("item"))
				Expect(err).NotTo(HaveOccurred())
				Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(ContainSubstring("Target cluster: 1 objects"))
				Expect(w.in(ctx, inThere)).To(BeEmpty())
				w.hold(ctx, "null")
				di, err := w.Landscaper.AwaitJob(ctx, w.Key("item"), job)
				Expect(err).NotTo(HaveOccurred())
				w.succeeds(di)
				Expect(w.in(ctx, w.Client)).To(BeEmpty())
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("leaves what it is to keep [F13]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{keeps: true})
				w.succeeds(w.move(ctx, other))
				w.leaves(ctx)
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("leaves children that its deployer never deletes, even if the clean-up comes first [F13]", func(ctx SpecContext) {
		w := newEnv(ctx, kinds[1], setup{keeps: true, cleanUpFirst: true})
		before := w.in(ctx, w.Client)
		w.succeeds(w.move(ctx, other))
		w.leaves(ctx)
		Expect(w.in(ctx, w.Client)).To(Equal(before))
		Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
	}, SpecTimeout(5*time.Minute))

	It("is planned [F13]", func(ctx SpecContext) {
		w := newEnv(ctx, kinds[0], setup{})
		di := w.Get(ctx, "item")
		di.Spec.Target.Name = other
		plan, err := manifest.Plan(ctx, w.Client, inThere, di, manifest.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(plan.String()).To(And(
			ContainSubstring("create ConfigMap "+w.Namespace+"/"+object),
			MatchRegexp(`leave the cluster \S+ of Target `+world.Cluster+`\n  delete ConfigMap `+w.Namespace+"/"+object),
		))
	}, SpecTimeout(5*time.Minute))
})
