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
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// createTenantTarget creates a Target for a cluster. Its user has all rights in the namespace of the world and no
// others, so that the cluster cannot be identified.
func (w *env) createTenantTarget(ctx context.Context, name string, at *controlplane.ControlPlane) {
	GinkgoHelper()
	user, err := at.AddUser("tenant-" + w.Namespace)
	Expect(err).NotTo(HaveOccurred())
	world.GrantRules(ctx, at.Config, "tenant-"+w.Namespace, w.Namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}})
	kubeconfig, err := faultnet.EncodeKubeconfig(user)
	Expect(err).NotTo(HaveOccurred())
	w.CreateTarget(ctx, name, kubeconfig)
}

// allowIdentification permits the user of a Target that tenant created to identify the cluster.
func (w *env) allowIdentification(ctx context.Context, at *controlplane.ControlPlane) {
	GinkgoHelper()
	world.GrantRules(ctx, at.Config, "tenant-"+w.Namespace, metav1.NamespaceSystem, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}, ResourceNames: []string{metav1.NamespaceSystem},
	})
}

// waitForEvent waits for an event about the item.
func (w *env) waitForEvent(ctx context.Context, reason, text string) {
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
				before := w.getUID(ctx, w.Client)
				w.createTenantTarget(ctx, "tenant", there)
				w.expectSucceeded(w.moveAndWait(ctx, "tenant"))
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(And(ContainSubstring("may remain"), ContainSubstring(named(w)), ContainSubstring("kube-system")))
				w.waitForEvent(ctx, "ClusterUnknown", named(w))
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))

				w.allowIdentification(ctx, there)
				w.waitUntilDeleted(ctx, w.Client)
				w.waitUntilCleanedUp(ctx)
				Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("keeps the objects and reports nothing if it is the same cluster [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.createTenantTarget(ctx, "tenant", here)
				w.expectSucceeded(w.moveAndWait(ctx, "tenant"))
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))
				Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(BeEmpty())
				Expect(string(w.ReadItem(ctx, "item")(NewWithT(GinkgoTB())).Status.ProviderStatus.Raw)).NotTo(ContainSubstring(`"former"`))
				w.Delete(ctx, "item")
				Expect(w.getUID(ctx, w.Client)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes the item from both clusters [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.createTenantTarget(ctx, "tenant", there)
				w.expectSucceeded(w.moveAndWait(ctx, "tenant"))
				w.Delete(ctx, "item")
				Expect(w.getUID(ctx, w.Client)).To(BeEmpty())
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("deletes the item although no Target leads to the old cluster any more, and names objects that may remain there [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				w.createTenantTarget(ctx, "tenant", there)
				w.setTarget(ctx, "tenant")
				Expect(w.Client.Delete(ctx, &lsv1alpha1.Target{ObjectMeta: metaOf(w, world.Cluster)})).To(Succeed())
				w.expectSucceeded(w.RunAgain(ctx, "item"))
				w.Delete(ctx, "item")
				w.waitForEvent(ctx, "Released", named(w))
				Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
				Expect(w.getUID(ctx, inThere)).To(BeEmpty())
			}, SpecTimeout(5*time.Minute))

			It("stops reporting the objects when an annotation releases them [F108]", func(ctx SpecContext) {
				w := newEnv(ctx, k, setup{})
				before := w.getUID(ctx, w.Client)
				w.createTenantTarget(ctx, "tenant", there)
				w.expectSucceeded(w.moveAndWait(ctx, "tenant"))
				w.setAnnotation(ctx, managed.ReleaseAnnotation, "true")
				w.waitUntilCleanedUp(ctx)
				w.waitForReleaseEvent(ctx, managed.ReleaseAnnotation)
				Expect(w.getUID(ctx, w.Client)).To(Equal(before))
			}, SpecTimeout(5*time.Minute))
		})
	}

	It("deletes the objects in the old cluster when both clusters can be identified [F108]", func(ctx SpecContext) {
		w := newWorld(ctx, kinds[0], setup{})
		w.createTenantTarget(ctx, "first", here)
		w.createTenantTarget(ctx, "tenant", there)
		w.Create(ctx, "item", w.kind.config(w, false), func(di *lsv1alpha1.DeployItem) { di.Spec.Target.Name = "first" })
		w.expectSucceeded(w.Finished(ctx, "item"))
		w.expectSucceeded(w.moveAndWait(ctx, "tenant"))
		Expect(w.getFormerClusters(ctx)(NewWithT(GinkgoTB()))).To(ContainSubstring("permit the Target tenant to get the namespace kube-system"))
		w.allowIdentification(ctx, there)
		Eventually(w.getFormerClusters(ctx)).WithContext(ctx).WithTimeout(world.Patience).Should(ContainSubstring("permit the Target first to get the namespace kube-system"))
		Expect(w.getUID(ctx, w.Client)).NotTo(BeEmpty())
		w.allowIdentification(ctx, here)
		w.waitUntilDeleted(ctx, w.Client)
		w.waitUntilCleanedUp(ctx)
		Expect(w.getUID(ctx, inThere)).NotTo(BeEmpty())
	}, SpecTimeout(5*time.Minute))
})
