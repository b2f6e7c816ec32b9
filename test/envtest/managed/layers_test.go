// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"context"
	"net/http"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
)

// These specs run with each deployer that the library provides.
var _ = Describe("Items", func() {
	for _, l := range layers {
		Context("of the deployer "+l.name, func() {
			It("deploys the consumer of a claim that is bound only when the consumer exists, and succeeds [F76]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				w.createClass(ctx, storagev1.VolumeBindingWaitForFirstConsumer)
				w.runSuccessfully(ctx, "item", []any{w.newVolumeClaim("data")}, []any{w.configMap("consumer", "a")})
				Expect(w.Read(ctx, "consumer")).NotTo(BeNil())
				claim := &corev1.PersistentVolumeClaim{}
				Expect(w.Client.Get(ctx, w.Key("data"), claim)).To(Succeed())
				Expect(claim.Status.Phase).To(Equal(corev1.ClaimPending))
			}, SpecTimeout(5*time.Minute))

			for _, way := range []string{"the policy keep", "the annotation delete-without-uninstall"} {
				It("takes over an object that a deleted item left behind by "+way+", with an event [F92]", func(ctx SpecContext) {
					w := newLayerEnv(ctx, l)
					w.createLeftObject(ctx, way)
					w.runSuccessfully(ctx, "second", nil, []any{w.configMap("left", "b")})
					live := w.Read(ctx, "left")
					Expect(live.Data).To(HaveKeyWithValue("key", "b"))
					Expect(live.Labels).To(HaveKeyWithValue(ownership.LabelItem, string(w.Get(ctx, "second").UID)))
					Eventually(w.listEvents(ctx, "second")).WithContext(ctx).WithTimeout(patience).Should(ContainElement(HavePrefix("TakenOver: ")))
				}, SpecTimeout(5*time.Minute))
			}

			It("applies namespaced objects although a cluster-scoped object is refused, and applies this one later [F93]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l)
				w.Counter.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Resource == "clusterroles" && r.Verb == "patch" },
					faultnet.ReturnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError)))
				w.start()
				role := w.object("rbac.authorization.k8s.io/v1", "ClusterRole", "", map[string]any{"rules": []any{}})
				w.Create(ctx, "item", w.config(w, nil, []any{role, w.configMap("remedy", "a")}))
				Eventually(w.Data(ctx, "remedy")).WithContext(ctx).WithTimeout(patience).ShouldNot(BeNil())
				Eventually(w.ReadItem(ctx, "item")).WithContext(ctx).WithTimeout(patience).Should(HaveField("Status.LastError.Message", ContainSubstring("ClusterRole")))
				Expect(w.Client.Get(ctx, client.ObjectKey{Name: w.Namespace}, &rbacv1.ClusterRole{})).NotTo(Succeed())
				w.Counter.SetInjector(nil)
				di := w.Finished(ctx, "item")
				Expect(di.Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded), "lastError: %+v", di.Status.LastError)
				Expect(w.Client.Get(ctx, client.ObjectKey{Name: w.Namespace}, &rbacv1.ClusterRole{})).To(Succeed())
				w.Delete(ctx, "item")
			}, SpecTimeout(5*time.Minute))

			It("writes a webhook configuration after all other objects, because one of them may be its server [F93]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l)
				const hooks = "validatingwebhookconfigurations"
				writes := w.recordWrites("configmaps", "services", "clusterroles", hooks)
				w.start()
				port := map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": 443}}}}
				w.runSuccessfully(ctx, "item", nil, []any{
					w.webhook(), w.configMap("a", "a"), w.object("v1", "Service", "server", port),
					w.object("rbac.authorization.k8s.io/v1", "ClusterRole", "", map[string]any{"rules": []any{}}), w.configMap("b", "b"),
				})
				Expect(writes()).To(HaveExactElements(Not(Equal(hooks)), Not(Equal(hooks)), Not(Equal(hooks)), Not(Equal(hooks)), Equal(hooks)))
				w.Delete(ctx, "item")
			}, SpecTimeout(5*time.Minute))

			It("corrects the number of a port that another client has changed, although the API server rejects an apply", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				ports := map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"name": "https", "port": 443}}}}
				w.runSuccessfully(ctx, "item", nil, []any{w.object("v1", "Service", "web", ports)})
				live := &corev1.Service{}
				Expect(w.Client.Get(ctx, w.Key("web"), live)).To(Succeed())
				live.Spec.Ports[0].Port = 8443
				Expect(w.Client.Update(ctx, live, client.FieldOwner("kubectl-edit"))).To(Succeed())
				Eventually(func(g Gomega) []corev1.ServicePort {
					g.Expect(w.Client.Get(ctx, w.Key("web"), live)).To(Succeed())
					return live.Spec.Ports
				}).WithContext(ctx).WithTimeout(patience).Should(ConsistOf(HaveField("Port", int32(443))))
				w.WaitUntilQuiet(ctx)
				Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(lsv1alpha1.DeployItemPhases.Succeeded))
			}, SpecTimeout(5*time.Minute))

			It("retries a correction that an admission policy denies with the code 422 until the policy is removed [F73]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				w.runSuccessfully(ctx, "item", nil, []any{w.configMap("a", "a"), w.configMap("b", "b")})
				w.WaitUntilQuiet(ctx)
				allow := w.DenyCreation(ctx, "a")
				Expect(w.Client.Delete(ctx, w.Read(ctx, "a"))).To(Succeed())
				Eventually(w.Condition(ctx, "item", contract.ConditionBackground)).WithContext(ctx).WithTimeout(patience).Should(And(
					HaveValue(HaveField("Status", lsv1alpha1.ConditionTrue)), HaveValue(HaveField("Message", ContainSubstring("not on Fridays")))))
				allow()
				Eventually(w.Data(ctx, "a")).WithContext(ctx).WithTimeout(patience).ShouldNot(BeNil())
				Eventually(w.Condition(ctx, "item", contract.ConditionBackground)).WithContext(ctx).WithTimeout(patience).Should(
					Or(BeNil(), HaveValue(HaveField("Status", lsv1alpha1.ConditionFalse))))
			}, SpecTimeout(5*time.Minute))

			It("deletes an object of a lost inventory, and leaves the copy that another controller made of it [F98]", func(ctx SpecContext) {
				w := newLayerEnv(ctx, l).start()
				w.runSuccessfully(ctx, "item", nil, []any{w.configMap("original", "a")})
				original := w.Read(ctx, "original")
				mirror := &corev1.ConfigMap{ObjectMeta: w.metaOf("mirror"), Data: original.Data}
				mirror.Labels, mirror.Annotations = original.Labels, original.Annotations
				Expect(w.Client.Create(ctx, mirror, client.FieldOwner("replicator"))).To(Succeed())
				w.Manager.Stop()
				w.RemoveProviderStatus(ctx, "item")
				w.start()
				w.Delete(ctx, "item")
				Expect(w.Read(ctx, "original")).To(BeNil())
				Expect(w.Read(ctx, "mirror")).To(HaveField("DeletionTimestamp", BeNil()))
			}, SpecTimeout(5*time.Minute))
		})
	}
})

// createClass creates a StorageClass whose name is the namespace of the world.
func (w *layerEnv) createClass(ctx context.Context, mode storagev1.VolumeBindingMode) {
	GinkgoHelper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Provisioner: "example.org/none", VolumeBindingMode: &mode}
	Expect(w.Client.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(w.Client.Delete(ctx, class)).To(Succeed()) })
}

// newVolumeClaim returns a PersistentVolumeClaim of the StorageClass of createClass. No controller binds it.
func (w *layerEnv) newVolumeClaim(name string) map[string]any {
	return w.object("v1", "PersistentVolumeClaim", name, map[string]any{"spec": map[string]any{
		"storageClassName": w.Namespace, "accessModes": []any{"ReadWriteOnce"},
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}})
}

// webhook returns a webhook configuration. Its server does not exist, so the API server refuses each ConfigMap that is
// created in the namespace of the world.
func (w *layerEnv) webhook() map[string]any {
	return w.object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", map[string]any{"webhooks": []any{map[string]any{
		"name": "check.example.org", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
		"clientConfig":      map[string]any{"service": map[string]any{"namespace": w.Namespace, "name": "server"}},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{corev1.LabelMetadataName: w.Namespace}},
		"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"}}},
	}}})
}

// createLeftObject starts a deployer. Its item "first" deploys the ConfigMap "left" and is deleted, but the ConfigMap
// stays.
func (w *layerEnv) createLeftObject(ctx context.Context, way string) {
	GinkgoHelper()
	annotations := map[string]string{lsv1alpha1.DeleteWithoutUninstallAnnotation: "true"}
	if way == "the policy keep" {
		w.policy, annotations = apply.PolicyKeep, nil
	}
	w.start()
	w.runSuccessfully(ctx, "first", nil, []any{w.configMap("left", "a")})
	Expect(w.Landscaper.SetAnnotations(ctx, w.Key("first"), annotations)).To(Succeed())
	w.Delete(ctx, "first")
	Expect(w.Read(ctx, "left")).NotTo(BeNil())
}

// recordWrites returns a function that returns the resources of all objects that the deployer has written so far, in
// the order of the writes. Only the given resources count.
func (w *layerEnv) recordWrites(resources ...string) func() []string {
	var mu sync.Mutex
	var written []string
	w.Counter.SetInjector(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		r, known := faultnet.RequestOf(req)
		for _, resource := range resources {
			if known && r.Resource == resource && (r.Verb == "patch" || r.Verb == "create") {
				written = append(written, resource)
			}
		}
		return nil, nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return written
	}
}
