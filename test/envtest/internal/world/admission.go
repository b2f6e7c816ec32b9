// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mutate installs a mutating admission policy for a resource of the core group in the namespace of the world, until the
// spec ends. The parameter `expression` is a CEL expression for an apply configuration. Mutate returns before the policy
// is effective.
func (w *World) Mutate(ctx context.Context, resource, expression string, operations ...any) {
	w.t.Helper()
	type object = map[string]any
	name := "mutate-" + w.Namespace
	policy := object{"metadata": object{"name": name}, "spec": object{
		"failurePolicy": "Fail", "reinvocationPolicy": "Never",
		"matchConstraints": object{
			"namespaceSelector": object{"matchLabels": object{corev1.LabelMetadataName: w.Namespace}},
			"resourceRules": []any{object{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": operations, "resources": []any{resource},
			}},
		},
		"mutations": []any{object{"patchType": "ApplyConfiguration", "applyConfiguration": object{"expression": expression}}},
	}}
	binding := object{"metadata": object{"name": name}, "spec": object{"policyName": name}}
	for kind, body := range map[string]object{"MutatingAdmissionPolicy": policy, "MutatingAdmissionPolicyBinding": binding} {
		obj := &unstructured.Unstructured{Object: body}
		obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: kind})
		w.must(w.Client.Create(ctx, obj))
		w.t.Cleanup(func() { w.must(w.Client.Delete(context.WithoutCancel(ctx), obj)) })
	}
}

// RewriteKeys installs a policy that replaces the value "key" of ConfigMaps in each write. The replacement differs from
// the stored value. RewriteKeys returns when the policy is effective.
func (w *World) RewriteKeys(ctx context.Context) {
	w.t.Helper()
	w.Mutate(ctx, "configmaps", `Object{data: {"key": request.operation == "CREATE" ? "rewritten" : oldObject.data["key"] + "+"}}`, "CREATE", "UPDATE")
	NewWithT(w.t).Eventually(func(g Gomega) {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, GenerateName: "probe-"}}
		g.Expect(w.Client.Create(ctx, probe, client.DryRunAll)).To(Succeed())
		g.Expect(probe.Data).To(HaveKey("key"))
	}).WithContext(ctx).WithTimeout(w.options.Patience).Should(Succeed())
}
