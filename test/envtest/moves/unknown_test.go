// SPDX-License-Identifier: Apache-2.0

package moves_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
	"github.com/deployerkit/deployerkit/upkeep"
)

// tenant creates a Target for a cluster. Its user has all rights in the namespace of the world and no others,
// so that the cluster cannot be identified.
func (w *env) tenant(ctx context.Context, name string, at *controlplane.ControlPlane) {
	GinkgoHelper()
	user, err := at.User("tenant-" + w.Namespace)
	Expect(err).NotTo(HaveOccurred())
	world.Grant(ctx, at.Config, "tenant-"+w.Namespace, w.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
	kubeconfig, err := faultnet.Kubeconfig(user)
	Expect(err).NotTo(HaveOccurred())
	w.CreateTarget(ctx, name, kubeconfig)
}

// identify permits the user of a Target that tenant created to identify the cluster.
func (w *env) identify(ctx context.Context, at *controlplane.ControlPlane) {
	GinkgoHelper()
	world.Grant(ctx, at.Config, "tenant-"+w.Namespace, metav1.NamespaceSystem, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{metav1.NamespaceSystem},
	})
}

// awaitEvent waits for an event about the item.
func (w *env) awaitEvent(ctx context.Context, reason, text string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		events := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, events, client.InNamespace(w.Namespace))).To(Succeed())
		g.Expect(events.Items).To(ContainElement(And(
			HaveField("Reason", reason), HaveField("Regarding.Name", "item"), HaveField("Note", ContainSubstring(text)),
		)))
	}).WithContext(ctx).WithTimeout(world.Patience).Should(Succeed())
}

var _ = Describe("Move of an item to a cluster that cannot be identified", func() {
	named := func(w *env) string { return "ConfigMap " + w.Namespace + "/" + object }

	for _, k := range kinds {
		Context("of the deployer "+k.name, func() {
			It("reports the objects that may remain, and deletes them when the cluster can be identified [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.tenant(ctx, "tenant", there)
				w.succeeds(w.move(ctx, "tenant"))
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(And(ContainSubstring("may remain"), ContainSubstring(named(w)), ContainSubstring("kube-system")))
				w.awaitEvent(ctx, "ClusterUnknown", named(w))
				Expect(w.in(ctx, w.Client)).To(Equal(before))

				w.identify(ctx, there)
				w.awaitGone(ctx, w.Client)
				w.leaves(ctx)
				Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("keeps the objects and reports nothing if it is the same cluster [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.tenant(ctx, "tenant", here)
				w.succeeds(w.move(ctx, "tenant"))
				Expect(w.in(ctx, w.Client)).To(Equal(before))
				Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
				Expect(string(w.Stored(ctx, "item")(NewWithT(GinkgoTB())).Status.ProviderStatus.Raw)).NotTo(ContainSubstring(`"former"`))
				w.Delete(ctx, "item")
				Expect(w.in(ctx, w.Client)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes the item from both clusters [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.tenant(ctx, "tenant", there)
				w.succeeds(w.move(ctx, "tenant"))
				w.Delete(ctx, "item")
				Expect(w.in(ctx, w.Client)).To(BeEmpty())
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes the item although no Target leads to the old cluster any more, and names objects that may remain there [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.tenant(ctx, "tenant", there)
				w.aim(ctx, "tenant")
				Expect(w.Client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metaOf(w, world.Cluster)})).To(Succeed())
				w.succeeds(w.Again(ctx, "item"))
				w.Delete(ctx, "item")
				w.awaitEvent(ctx, "Released", named(w))
				Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.in(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("stops reporting the objects when an annotation releases them [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.in(ctx, w.Client)
				w.tenant(ctx, "tenant", there)
				w.succeeds(w.move(ctx, "tenant"))
				w.annotate(ctx, upkeep.ReleaseAnnotation, "true")
				w.leaves(ctx)
				w.awaitReleased(ctx, upkeep.ReleaseAnnotation)
				Expect(w.in(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("deletes the objects in the old cluster when both clusters can be identified [F108]", func(ctx SpecContext) {
		w := newWorld(ctx, kinds[0], setup{})
		w.tenant(ctx, "first", here)
		w.tenant(ctx, "tenant", there)
		w.Create(ctx, "item", w.kind.config(w, false), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "first" })
		w.succeeds(w.Finished(ctx, "item"))
		w.succeeds(w.move(ctx, "tenant"))
		Expect(w.left(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("permit the Target tenant to get the namespace kube-system"))
		w.identify(ctx, there)
		Eventually(w.left(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(ContainSubstring("permit the Target first to get the namespace kube-system"))
		Expect(w.in(ctx, w.Client)).NotTo(BeEmpty())
		w.identify(ctx, here)
		w.awaitGone(ctx, w.Client)
		w.leaves(ctx)
		Expect(w.in(ctx, inThere)).NotTo(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})
