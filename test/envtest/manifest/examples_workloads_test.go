// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// runKubelet marks all Pods as running until the spec ends, because the control plane has no nodes.
func runKubelet(ctx context.Context, w *env) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}})
	Expect(err).NotTo(HaveOccurred())
	run := func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		pod := &corev1.Pod{}
		if err := mgr.GetClient().Get(ctx, req.NamespacedName, pod); err != nil || req.Namespace != w.Namespace || pod.Status.Phase == corev1.PodRunning {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return ctrl.Result{}, client.IgnoreNotFound(mgr.GetClient().Status().Update(ctx, pod))
	}
	Expect(ctrl.NewControllerManagedBy(mgr).For(&corev1.Pod{}).Complete(reconcile.Func(run))).To(Succeed())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() error { cancel(); return <-done })
}

var _ = Describe("Workloads with the controllers of Kubernetes", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		Expect(cp.StartControllerManager(ctx)).To(Succeed())
		DeferCleanup(cp.StopControllerManager)
	})

	It("a workload is applied, waits with a reason until it is ready, is corrected, and is deleted [D12, L3]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		w.createExample(ctx, "logging")
		Eventually(w.item(ctx, "logging")).WithTimeout(patience).Should(WithTransform(getWaitingReason, ContainSubstring("Deployment.apps "+w.Namespace+"/logging: Available: 0/2")))
		Expect(w.item(ctx, "logging")(NewGomega(Fail)).Status.Phase).To(Equal(phases.Progressing))
		runKubelet(ctx, w)
		di := w.Finished(ctx, "logging")
		Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
		Expect(getWaitingReason(di)).To(BeEmpty())

		live := &appsv1.Deployment{}
		Expect(w.Client.Get(ctx, w.Key("logging"), live)).To(Succeed())
		Expect(live.Status.AvailableReplicas).To(BeEquivalentTo(2))
		body := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))
		Expect(w.Client.Patch(ctx, live, body, client.FieldOwner("kubectl-scale"))).To(Succeed())
		Eventually(func(g Gomega) int32 {
			g.Expect(w.Client.Get(ctx, w.Key("logging"), live)).To(Succeed())
			return *live.Spec.Replicas
		}).WithTimeout(patience).Should(BeEquivalentTo(2), func() string {
			// This text is added to the message of a failure.
			return fmt.Sprintf("managed fields: %v\nitem: %+v", live.ManagedFields, w.item(ctx, "logging")(NewGomega(Fail)).Status)
		})
		Eventually(w.events(ctx, "logging")).WithTimeout(patience).Should(ContainElement(And(HavePrefix("Drift: "), ContainSubstring("kubectl-scale"))))

		w.remove(ctx, "logging")
		Expect(w.hasObject(ctx, &appsv1.Deployment{}, "logging")).To(BeFalse())
		Expect(w.hasObject(ctx, &corev1.ConfigMap{}, "logging")).To(BeFalse())
	}, SpecTimeout(8*time.Minute))

	It("objects are applied by stage and deleted in reverse, regardless of the order of the manifests [D15]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		applied := w.record("patch")
		w.runSuccessfully(ctx, "stages")
		Expect(applied()).To(Equal([]string{"customresourcedefinitions", "namespaces", "clusterroles", "backups"}))
		deleted := w.record("delete")
		w.remove(ctx, "stages")
		Expect(deleted()).To(Equal([]string{"backups", "clusterroles", "namespaces", "customresourcedefinitions"}))
	}, SpecTimeout(10*time.Minute))
})
