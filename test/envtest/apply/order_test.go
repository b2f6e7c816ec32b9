// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/faultnet"
)

// newObjectOfEachStage returns one object for each stage of an apply. The objects of later stages come first. The names
// of the cluster-scoped objects contain the namespace of the spec, so that these names are unique.
func (w *env) newObjectOfEachStage() []apply.Desired {
	id := strings.ReplaceAll(w.namespace, "-", "")
	inside := w.manifest(id+".example.org/v1", "Thing", "thing", nil)
	inside.Object.SetNamespace(id)
	cluster := func(apiVersion, kind, name string, body map[string]any) apply.Desired {
		d := w.manifest(apiVersion, kind, name, body)
		d.Object.SetNamespace("")
		return d
	}
	return []apply.Desired{
		inside,
		cluster("rbac.authorization.k8s.io/v1", "ClusterRole", id, map[string]any{"rules": []any{}}),
		cluster("v1", "Namespace", id, nil),
		cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "things."+id+".example.org", map[string]any{"spec": map[string]any{
			"group": id + ".example.org", "scope": "Namespaced",
			"names": map[string]any{"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		}}),
	}
}

// recordResources runs f and records the requests with the given verb. It returns the resources of these requests, each
// resource once, in the order of the first requests.
func (w *env) recordResources(verb string, f func()) []string {
	out := []string{}
	w.wire.SetInjector(func(req *http.Request) (*http.Response, error) {
		if r, ok := faultnet.RequestOf(req); ok && r.Verb == verb && !slices.Contains(out, r.Resource) {
			out = append(out, r.Resource)
		}
		return nil, nil
	})
	f()
	w.wire.SetInjector(nil)
	return out
}

var _ = Describe("Order of objects", func() {
	It("applies definitions, namespaces, cluster-scoped and namespaced objects, and deletes in reverse [D15] [H-16]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.options.Concurrency = 1
		all := w.newObjectOfEachStage()
		// Until a CustomResourceDefinition is established, no object of its kind is applied.
		applied := w.recordResources("patch", func() {
			report, err := w.try(ctx, all...)
			Expect(err).NotTo(HaveOccurred())
			if !report.IsDone() {
				Expect(report.Reason()).To(ContainSubstring("not established"))
				Expect(report.RetryAfter()).To(BeNumerically(">", 0))
			}
			w.apply(ctx, all...)
		})
		Expect(slices.Concat([]string{"customresourcedefinitions"}, slices.DeleteFunc(applied, func(s string) bool { return s == "customresourcedefinitions" }))).
			To(Equal([]string{"customresourcedefinitions", "namespaces", "clusterroles", "things"}))
		again := w.recordRequests(func() { w.apply(ctx, all...) })
		Expect(again.Sum()).To(BeZero(), again.String())

		// A Namespace is removed only when its spec contains no finalizers. The controller that removes these
		// finalizers does not run here.
		waited := w.recordResources("delete", func() {
			inv, report, err := w.newEngine().Delete(ctx, w.owner, w.stored, nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Waiting).To(HaveLen(1))
			Expect(report.Reason()).To(ContainSubstring("is being deleted"))
			w.store(inv)
		})
		Expect(waited).To(Equal([]string{"things", "clusterroles", "namespaces"}))
		Expect(w.stored.Entries).To(HaveLen(2))
		removeNamespaceFinalizer(ctx, all[2].Object.GetName())
		rest := w.recordResources("delete", func() { w.delete(ctx) })
		Expect(rest).To(Equal([]string{"customresourcedefinitions"}))
		Expect(w.stored.Entries).To(BeEmpty())
	})

	It("does not apply an object whose definition failed [H-16] [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		all := w.newObjectOfEachStage()
		w.wire.SetInjector(faultnet.When(func(r faultnet.Request) bool { return r.Resource == "customresourcedefinitions" && r.Verb == "patch" },
			faultnet.ReturnStatus(http.StatusInternalServerError, metav1.StatusReasonInternalError)))
		spent := w.recordRequests(func() {
			report, err := w.try(ctx, all...)
			Expect(err).To(MatchError(ContainSubstring("CustomResourceDefinition")))
			Expect(report.Waiting).To(ConsistOf(HaveField("Ref.Kind", "Thing")))
		})
		Expect(spent.ForObject("namespaces", "", all[2].Object.GetName()).Sum()).To(Equal(1), spent.String())
		for request := range spent {
			Expect(request.Resource).NotTo(Equal("things"))
		}
	})

	It("applies a webhook after its own server, although the webhook checks the namespace of the server [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		server := w.manifest("v1", "Service", "webhook", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(443)}}}})
		webhook := w.webhook(w.namespace, "check.example.org")
		w.apply(ctx, webhook, server, w.configMap("a"))
		// The update of the webhook is the remedy for the ConfigMap that the webhook refuses.
		_, err := w.try(ctx, webhook, server, w.configMap("a", "key", "new"))
		Expect(err).To(MatchError(ContainSubstring("check.example.org")))
		Expect(w.listNames()).To(ContainElement(webhook.Object.GetName()))
		hooks, _, _ := unstructured.NestedSlice(webhook.Object.Object, "webhooks")
		hooks[0].(map[string]any)["failurePolicy"] = "Ignore"
		webhook.Object = webhook.Object.DeepCopy()
		Expect(unstructured.SetNestedSlice(webhook.Object.Object, hooks, "webhooks")).To(Succeed())
		Eventually(func() error { _, err := w.try(ctx, webhook, server, w.configMap("a", "key", "new")); return err }).
			WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
		w.delete(ctx)
	})

	It("deletes a webhook that refuses objects and is no longer desired at once, and deletes other objects only after these are applied [F93]", func(ctx SpecContext) {
		w := newEnv(ctx)
		refusing, other := w.webhook(w.namespace, "check.example.org"), w.webhook(w.namespace+"-other", "other.example.org")
		hooks, _, _ := unstructured.NestedSlice(other.Object.Object, "webhooks")
		hooks[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["resources"] = []any{"endpoints"}
		Expect(unstructured.SetNestedSlice(other.Object.Object, hooks, "webhooks")).To(Succeed())
		w.apply(ctx, refusing, other, w.configMap("a"), w.configMap("old"))
		refused := func() error { return direct.Update(ctx, w.get(ctx, "old"), client.DryRunAll) }
		Eventually(refused).WithTimeout(waitTimeout).WithPolling(waitPolling).Should(MatchError(ContainSubstring("check.example.org")))

		w.failWrites("a")
		_, err := w.try(ctx, w.configMap("a", "key", "new"))
		Expect(err).To(HaveOccurred())
		Expect(w.listNames()).To(ConsistOf(refusing.Object.GetName(), other.Object.GetName(), "a", "old"), "another error prunes nothing")

		w.wire.SetInjector(nil)
		_, err = w.try(ctx, w.configMap("a", "key", "new"))
		Expect(err).To(MatchError(ContainSubstring("check.example.org")))
		Expect(w.listNames()).To(ConsistOf(other.Object.GetName(), "a", "old"))
		Eventually(func() error { _, err := w.try(ctx, w.configMap("a", "key", "new")); return err }).
			WithTimeout(waitTimeout).WithPolling(waitPolling).Should(Succeed())
		w.apply(ctx, w.configMap("a", "key", "new"))
		Expect(w.listNames()).To(ConsistOf("a"))
		w.delete(ctx)
	})

	It("waits for a namespace that is missing or is being deleted", func(ctx SpecContext) {
		w := newEnv(ctx)
		desired := w.configMap("a")
		desired.Object.SetNamespace(w.namespace + "-later")
		report, err := w.try(ctx, desired)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Reason()).To(ContainSubstring("the namespace " + w.namespace + "-later does not exist"))

		w.createForeign(ctx, "held")
		w.patchConfigMap(ctx, "held", `{"metadata":{"finalizers":["example.org/held"]}}`)
		Expect(direct.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
		report, err = w.try(ctx, w.configMap("a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Waiting).To(ContainElement(HaveField("Message", ContainSubstring("is being deleted"))))
	})

	It("leaves an object that is being deleted until it is gone", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, w.configMap("a", "key", "value"))
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":["example.org/held"]}}`)
		Expect(direct.Delete(ctx, w.get(ctx, "a"))).To(Succeed())
		spent := w.recordRequests(func() {
			report, err := w.try(ctx, w.configMap("a", "key", "new"))
			Expect(err).NotTo(HaveOccurred())
			Expect(report.Reason()).To(ContainSubstring("is being deleted"))
		})
		Expect(spent.Sum()).To(BeZero())
		w.patchConfigMap(ctx, "a", `{"metadata":{"finalizers":null}}`)
		w.apply(ctx, w.configMap("a", "key", "new"))
		Expect(w.get(ctx, "a").Data).To(HaveKeyWithValue("key", "new"))
	})

	It("expands lists, also within lists", func(ctx SpecContext) {
		w := newEnv(ctx)
		list := func(items ...any) map[string]any {
			return map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
		}
		inner := list(w.configMap("b").Object.Object)
		outer := apply.Desired{Object: &unstructured.Unstructured{Object: list(w.configMap("a").Object.Object, inner)}, Policy: apply.PolicyKeep}
		w.apply(ctx, outer)
		Expect(w.listOwned(ctx)).To(ConsistOf("a", "b"))
		Expect(w.stored.Entries).To(HaveEach(HaveField("Policy", apply.PolicyKeep)))
	})

	It("does not prune an object whose API version changed", func(ctx SpecContext) {
		w := newEnv(ctx)
		spec := map[string]any{"spec": map[string]any{"maxReplicas": int64(3), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}
		w.apply(ctx, w.manifest("autoscaling/v1", "HorizontalPodAutoscaler", "a", spec))
		uid := w.stored.Entries[0].UID
		w.apply(ctx, w.manifest("autoscaling/v2", "HorizontalPodAutoscaler", "a", spec))
		Expect(w.stored.Entries).To(ConsistOf(SatisfyAll(HaveField("UID", uid), HaveField("APIVersion", "autoscaling/v2"))))
	})
})

// webhook returns a webhook configuration. The server of its webhook does not exist, so the API server refuses each
// write of a ConfigMap or Service in the namespace of the environment.
func (w *env) webhook(name, webhook string) apply.Desired {
	out := w.manifest("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name, map[string]any{"webhooks": []any{map[string]any{
		"name": webhook, "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
		"clientConfig":      map[string]any{"service": map[string]any{"namespace": w.namespace, "name": "webhook"}},
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.namespace}},
		"rules":             []any{map[string]any{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"services", "configmaps"}, "operations": []any{"CREATE", "UPDATE", "DELETE"}}},
	}}})
	out.Object.SetNamespace("")
	return out
}

// removeNamespaceFinalizer removes the finalizer in the spec of a Namespace, as the namespace controller would.
func removeNamespaceFinalizer(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{}
	Expect(direct.Get(ctx, client.ObjectKey{Name: name}, namespace)).To(Succeed())
	namespace.Spec.Finalizers = nil
	err := direct.SubResource("finalize").Update(ctx, namespace)
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}
