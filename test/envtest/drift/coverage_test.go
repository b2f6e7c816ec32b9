// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"runtime"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Coverage of watches", func() {
	configMaps := resourceOf(configMap)

	// grant grants verbs for ConfigMaps in a namespace to the given user.
	grant := func(ctx SpecContext, user, namespace string, verbs ...string) {
		GinkgoHelper()
		clients, err := kubernetes.NewForConfig(cp.Config)
		Expect(err).NotTo(HaveOccurred())
		_, err = clients.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		world.GrantRules(ctx, cp.Config, user, namespace, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs})
	}

	It("watches the permitted namespaces if the cluster cannot be watched", func(ctx SpecContext) {
		user, err := cp.AddUser("namespaced")
		Expect(err).NotTo(HaveOccurred())
		grant(ctx, "namespaced", "one", "list", "watch")
		grant(ctx, "namespaced", "two", "get")
		grant(ctx, "namespaced", "three", "list")
		l := newLab(user)
		var coverage observe.Coverage
		// If the right to watch is missing, that is detected shortly after the first list.
		Eventually(func() []string {
			coverage, err = l.w.Watch(ctx, configMaps, "one", "two", "three")
			Expect(err).NotTo(HaveOccurred())
			return coverage.Missing
		}).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(Equal([]string{"three", "two"}))
		Expect(coverage).To(SatisfyAll(HaveField("Scope", observe.ScopeNamespaces), HaveField("Namespaces", []string{"one"}), HaveField("Message", ContainSubstring("forbidden"))))

		m := manifest(configMap, configMapBody)
		m.SetNamespace("one")
		expected := l.send(ctx, m)
		l.w.SetBaseline(l.owner.UID, []observe.BaselineObject{expected})
		merge(`{"data":{"color":"blue"}}`)(ctx, m)
		Eventually(func() []observe.Drift {
			l.mu.Lock()
			defer l.mu.Unlock()
			return slices.Clone(l.events)
		}).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(ConsistOf(HaveField("Reason", observe.DriftReasonChanged)))
	})

	DescribeTable("reports a kind that cannot be watched",
		func(ctx SpecContext, gvr schema.GroupVersionResource) {
			l := newLab(cp.Config)
			coverage, err := l.w.Watch(ctx, gvr, "default")
			Expect(err).NotTo(HaveOccurred())
			Expect(coverage).To(SatisfyAll(HaveField("Scope", observe.ScopeNone), HaveField("Missing", []string{"default"}), HaveField("Message", ContainSubstring(gvr.Resource))))
			Expect(l.w.GetStats().Watches).To(BeZero())
		},
		Entry("the kind is Binding", schema.GroupVersionResource{Version: "v1", Resource: "bindings"}),
		Entry("the kind is SelfSubjectAccessReview", schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}),
		Entry("the kind does not exist", schema.GroupVersionResource{Group: "none.example.org", Version: "v1", Resource: "nones"}),
	)

	It("returns no state while the API server is away, and detects an edit right after that", func(ctx SpecContext) {
		l := newLab(cp.Config)
		obj := l.run(ctx, manifest(configMap, configMapBody))[0]
		Expect(l.collectDrifts(ctx, configMap)).To(BeEmpty())
		known := func() bool {
			_, ok := l.w.Get(configMaps, client.ObjectKeyFromObject(obj))
			return ok
		}
		Expect(known()).To(BeTrue())
		Expect(cp.StopAPIServer()).To(Succeed())
		Eventually(known).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(BeFalse())
		Expect(cp.StartAPIServer()).To(Succeed())
		Eventually(func() error { return c.Get(ctx, client.ObjectKeyFromObject(obj), obj) }).
			WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(Succeed())
		merge(`{"data":{"color":"blue"}}`)(ctx, obj)
		Eventually(func() []observe.Drift {
			l.mu.Lock()
			defer l.mu.Unlock()
			return slices.Clone(l.events)
		}).WithContext(ctx).WithTimeout(2 * eventuallyTimeout).WithPolling(poll).Should(ConsistOf(HaveField("Reason", observe.DriftReasonChanged)))
		Expect(known()).To(BeTrue())
	})

	It("stops all goroutines", func(ctx SpecContext) {
		before := runtime.NumGoroutine()
		l := newLab(cp.Config)
		l.run(ctx, manifest(configMap, configMapBody), manifest(deployment, deploymentBody), manifest(sample, sampleBody))
		Expect(l.w.GetStats()).To(Equal(observe.Stats{Watches: 3, Objects: l.w.GetStats().Objects, Items: 1}))
		l.stop()
		Expect(l.w.GetStats()).To(Equal(observe.Stats{Items: 1}))
		// Some of the goroutines that were counted before belong to watchers that have ended since then. All watchers
		// share their connections. Therefore, the number may be at most two higher than before.
		Eventually(runtime.NumGoroutine).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(BeNumerically("<=", before+2))
	})
})
