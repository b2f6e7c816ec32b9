// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mutate installs a mutating admission policy for a resource of the core group in the namespace of the world, until the
// spec ends. The policy applies expression, a CEL expression for an apply configuration. Mutate returns before the
// policy is effective.
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

// DenyCreation installs an admission policy that denies the creation of a ConfigMap in the namespace of the world. It
// returns when the policy is effective. The returned function removes the policy.
func (w *World) DenyCreation(ctx context.Context, name string) (allow func()) {
	w.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "deny-" + w.Namespace}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create},
			Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		},
	}}}
	policy.Spec.Validations = []admissionv1.Validation{{Expression: fmt.Sprintf("object.metadata.name != %q", name), Message: "not on Fridays"}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy.Name}}
	binding.Spec.PolicyName, binding.Spec.ValidationActions = policy.Name, []admissionv1.ValidationAction{admissionv1.Deny}
	binding.Spec.MatchResources = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.Namespace}},
	}
	w.must(w.Client.Create(ctx, policy))
	w.must(w.Client.Create(ctx, binding))
	allow = func() {
		w.must(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), binding)))
		w.must(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), policy)))
	}
	w.t.Cleanup(allow)
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name}}
	NewWithT(w.t).Eventually(func() error { return w.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).WithTimeout(w.options.Patience).Should(MatchError(apierrors.IsInvalid, "refused by the policy"))
	return allow
}
