// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Program in an installed chart", func() {
	It("processes items with the rendered arguments, configuration and rights, and needs no other rights [O47, O8, O9, O10, O36, O52]", func(ctx SpecContext) {
		r := newRelease(ctx, "manifest-deployer", helm.FindChart("manifest-deployer"))
		r.install(ctx, r.values(fmt.Sprintf(`{deployer: {identity: me, verbosityLevel: DEBUG, controller: {workers: 3, cacheSyncTimeout: 3m}, targetSelector: [{targets: [{name: cluster, namespace: %[1]s}]}, {targets: [{name: self, namespace: %[1]s}]}], targets: {enableSelf: true}}}`, r.namespace)))
		d := r.deployment(ctx)
		asPod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "as-pod", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
		Expect(c.Create(ctx, asPod, client.DryRunAll)).To(Succeed(), "the namespace accepts only restricted Pods")

		p := r.start(ctx)
		p.waitUntilReady()
		standby := r.startBeside(ctx)
		standby.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		i.createTarget(ctx, "other", "")
		i.createTarget(ctx, "self", `{"selfConfig":{"serviceAccount":{"name":"robot"}}}`)
		robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "robot"}}
		Expect(c.Create(ctx, robot)).To(Succeed())
		world.GrantRules(ctx, cp.Config, "system:serviceaccount:"+r.namespace+":robot", r.namespace, rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
		})
		i.createItem(ctx, "foreign", "other", i.newConfig("1", "foreign"))
		i.runLifecycle(ctx, "cluster")
		i.runLifecycle(ctx, "self")
		Expect(i.value(ctx, "foreign")).To(Equal("gone"), "the selectors do not match the Target of the item")
		Eventually(func() string { return p.getMetrics() + standby.getMetrics() }).WithTimeout(timeout).Should(
			MatchRegexp(`controller_runtime_max_concurrent_reconciles{[^}]*} 103\n`), "the metric is that of the leader")
		Expect(p.stop() + standby.stop()).To(SatisfyAll(ContainSubstring(`"level":"debug"`), Not(ContainSubstring("is forbidden"))))
		Expect(listRefused(ctx, r.namespace, d.Spec.Template.Spec.ServiceAccountName)).To(BeEmpty())
	})

	It("processes items of the mock deployer, at the log level info without a value [O66, O8]", func(ctx SpecContext) {
		r := newRelease(ctx, "rel", helm.FindChart("mock-deployer"))
		r.install(ctx, r.values(""))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		item := i.createItem(ctx, "item", "", mockConfig)
		i.waitUntilSucceeded(ctx, item)
		Expect(i.Delete(ctx, item)).To(Succeed())
		Expect(p.stop()).To(SatisfyAll(ContainSubstring(`"level":"info"`), Not(ContainSubstring(`"level":"debug"`)), Not(ContainSubstring("is forbidden"))))
		Expect(listRefused(ctx, r.namespace, "rel-mock-deployer")).To(BeEmpty())
		Expect(r.remove()).To(Succeed())
		Expect(c.Get(ctx, types.NamespacedName{Name: r.namespace + ":rel-mock-deployer"}, &rbacv1.ClusterRole{})).To(MatchError(ContainSubstring("not found")))
		left := &corev1.SecretList{}
		Expect(c.List(ctx, left, client.InNamespace(r.namespace))).To(Succeed())
		Expect(left.Items).To(BeEmpty(), "nothing is left")
	})

	It("processes the items of one namespace with rights in this namespace only [O46]", func(ctx SpecContext) {
		shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
		Expect(c.Create(ctx, shop)).To(Succeed())
		r := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		r.install(ctx, r.values("deployer: {watchNamespace: "+shop.Name+"}"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.namespace = shop.Name
		i.createTarget(ctx, "cluster", "")
		i.runLifecycle(ctx, "cluster")
		Expect(p.stop()).NotTo(ContainSubstring("is forbidden"))
		Expect(listRefused(ctx, r.namespace, "rel-manifest-deployer")).To(BeEmpty())
	})

	It("processes the items of another cluster with the rights that are installed there, and restarts when its kubeconfig changes [O44, O43, O54]", func(ctx SpecContext) {
		rights := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		rights.install(ctx, "rbac: {landscaperClusterOnly: true}")
		kubeconfig := func() []byte {
			content, err := faultnet.EncodeKubeconfig(newConfigForAccount(ctx, rights.namespace, "rel-manifest-deployer"))
			Expect(err).NotTo(HaveOccurred())
			return content
		}
		r := newRelease(ctx, "rel", helm.FindChart("manifest-deployer"))
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "landscaper"}, Data: map[string][]byte{"kubeconfig": kubeconfig()}}
		Expect(c.Create(ctx, secret)).To(Succeed())
		r.install(ctx, r.values("deployer: {landscaperClusterKubeconfig: {secretRef: landscaper}}"))
		p := r.start(ctx)
		p.waitUntilReady()
		i := newItems(r)
		i.createTarget(ctx, "cluster", "")
		i.runLifecycle(ctx, "cluster")
		secret.Data["kubeconfig"] = append(kubeconfig(), '\n')
		Expect(c.Update(ctx, secret)).To(Succeed())
		p.writeVolumes(ctx, r.namespace)
		Eventually(p.Session, timeout).Should(gexec.Exit(0))
		Expect(string(p.Err.Contents())).To(ContainSubstring("the kubeconfig has changed"))
		Expect(listRefused(ctx, r.namespace, "rel-manifest-deployer")).To(BeEmpty())
		Expect(listRefused(ctx, rights.namespace, "rel-manifest-deployer")).To(BeEmpty())
		r.start(ctx).waitUntilReady()
	})

	It("processes each item once while two replicas are replaced [O35]", func(ctx SpecContext) {
		r := newRelease(ctx, "rel", helm.FindChart("mock-deployer"))
		r.install(ctx, r.values("replicaCount: 2"))
		old := []*pod{r.start(ctx), r.startBeside(ctx)}
		old[0].waitUntilReady()
		old[1].waitUntilReady()
		i := newItems(r)
		var all []types.NamespacedName
		deploy := func(generation int) {
			for n := range 5 {
				all = append(all, i.createItem(ctx, fmt.Sprintf("item-%d-%d", generation, n), "", mockConfig))
			}
		}
		deploy(0)
		r.upgrade(ctx, r.values("{replicaCount: 2, podAnnotations: {next: true}}"))
		var logs []string
		for generation, p := range old {
			r.startBeside(ctx).waitUntilReady()
			deploy(1 + generation)
			logs = append(logs, p.stop())
			deploy(3 + generation)
		}
		for _, item := range all {
			i.waitUntilSucceeded(ctx, item)
			di, err := i.Get(ctx, item)
			Expect(err).NotTo(HaveOccurred())
			Expect(di.Status.JobIDFinished).To(Equal(di.Status.JobID))
		}
		Expect(logs).To(HaveEach(Not(ContainSubstring("object has been modified"))))
		exports := map[string]int{}
		for _, call := range listCalls(ctx, r.namespace, "rel-mock-deployer") {
			if call.ObjectRef.Resource == "secrets" && call.Verb != "get" {
				exports[call.ObjectRef.Name]++
			}
		}
		Expect(exports).To(SatisfyAll(HaveLen(len(all)), HaveEach(1)), "each item has written its export once")
		Expect(i.Delete(ctx, all...)).To(Succeed())
	})

	It("runs beside another release with the same name in another namespace [O48]", func(ctx SpecContext) {
		for range 2 {
			r := newRelease(ctx, "rel", helm.FindChart("mock-deployer"))
			r.install(ctx, r.values(""))
			p := r.start(ctx)
			p.waitUntilReady()
			lease := func() string {
				held := &coordinationv1.LeaseList{}
				Expect(c.List(ctx, held, client.InNamespace(r.namespace))).To(Succeed())
				if len(held.Items) != 1 || held.Items[0].Spec.HolderIdentity == nil {
					return ""
				}
				return *held.Items[0].Spec.HolderIdentity
			}
			Eventually(lease).WithTimeout(timeout).ShouldNot(BeEmpty(), "the lease is in the namespace of the release [O42]")
			i := newItems(r)
			item := i.createItem(ctx, "item", "", mockConfig)
			i.waitUntilSucceeded(ctx, item)
			Expect(i.Delete(ctx, item)).To(Succeed())
		}
	})
})

// startBeside starts another replica with its own ports.
func (r *release) startBeside(ctx SpecContext) *pod {
	GinkgoHelper()
	health, metrics := findFreePort(), findFreePort()
	p := r.start(ctx, fmt.Sprintf("--health-probe-bind-address=:%d", health), fmt.Sprintf("--metrics-bind-address=:%d", metrics))
	p.ports = map[string]int32{"health": int32(health), "metrics": int32(metrics)} //nolint:gosec // ports
	return p
}
