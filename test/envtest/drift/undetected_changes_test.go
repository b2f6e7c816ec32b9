// SPDX-License-Identifier: Apache-2.0

package drift_test

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/observe"
)

// Each edit changes a field that the item applied. The fingerprint of the object nevertheless stays the same.
// docs/drift.md lists these changes as blind spots.
var _ = DescribeTable("a known blind spot of drift detection is not reported",
	func(ctx SpecContext, kind schema.GroupVersionKind, body string, change edit) {
		l := newLab(cp.Config)
		obj := l.run(ctx, manifest(kind, body))[0]
		before, generation := l.key(ctx, obj), obj.GetGeneration()
		version := obj.GetResourceVersion()
		change(ctx, obj)
		after := read(ctx, obj)
		Expect(after.GetResourceVersion()).NotTo(Equal(version), "nothing was changed")
		if generation > 0 {
			Expect(after.GetGeneration()).NotTo(Equal(generation), "the edit did not change the generation")
		}
		Expect(l.key(ctx, obj)).To(Equal(before))
		Expect(l.collectDrifts(ctx, kind)).To(BeEmpty())
	},
	Entry("reordered list with keys", deployment, deploymentBody, patchWithOperations(
		`[{"op":"replace","path":"/spec/template/spec/containers/0/env","value":[{"name":"B","value":"2"},{"name":"A","value":"1"}]}]`)),
	Entry("reordered set", sample, sampleBody, merge(`{"spec":{"set":["b","a"]}}`)),
	Entry("child in a map that the item applied empty", sample, sampleBody, merge(`{"spec":{"free":{"empty":{"child":"x"}}}}`)),
	Entry("child in an empty struct of the item", deployment, scaledBody, patchStrategic(
		`{"spec":{"template":{"spec":{"containers":[{"name":"web","resources":{"limits":{"cpu":"1"}}}]}}}}`)),
	Entry("1 changed to 1.0", sample, sampleBody, patchWithOperations(`[{"op":"replace","path":"/spec/free/n","value":1.0}]`)),
	Entry("data of a Secret that was applied as stringData", secret, `"stringData":{"p":"x"}`, merge(`{"data":{"p":"eQ=="}}`)),
	Entry("data removed from such a Secret", secret, `"stringData":{"p":"x"}`, merge(`{"data":{"p":null}}`)),
)

var _ = Describe("Blind spots of drift detection", func() {
	It("an apply under the manager of the item is missed within the same second, and detected later", func(ctx SpecContext) {
		l := newLab(cp.Config)
		obj := l.run(ctx, manifest(configMap, configMapBody))[0]
		own := func() ownership.Fingerprint {
			other := manifest(configMap, `"data":{"size":"big"}`)
			other.SetName(obj.GetName())
			other.Object["data"].(map[string]any)["color"] = obj.GetResourceVersion() + read(ctx, obj).GetResourceVersion()
			l.owner.Mark(other)
			other.SetLabels(map[string]string{"app": "web", ownership.LabelItem: string(l.owner.UID)})
			annotations := other.GetAnnotations()
			annotations["note"] = "x"
			other.SetAnnotations(annotations)
			applyAs(ctx, other, l.owner.FieldManager())
			return ownership.ComputeFingerprint(other, l.owner.FieldManager())
		}
		entry, _ := ownership.FindApplyEntry(obj.GetManagedFields(), l.owner.FieldManager())
		first := own()
		now, _ := ownership.FindApplyEntry(read(ctx, obj).GetManagedFields(), l.owner.FieldManager())
		Expect(first == l.key(ctx, obj)).To(BeTrue())
		Expect(first == ownership.ComputeFingerprint(obj, l.owner.FieldManager())).To(Equal(entry.Time.Equal(now.Time)), "the key depends on the time of the entry")
		Eventually(own).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).ShouldNot(Equal(ownership.ComputeFingerprint(obj, l.owner.FieldManager())))
		Expect(l.collectDrifts(ctx, configMap)).NotTo(BeEmpty())
	})

	It("a change of an admission policy during a write of another client is missed", func(ctx SpecContext) {
		l := newLab(cp.Config)
		obj := l.run(ctx, manifest(configMap, configMapBody))[0]
		before := l.key(ctx, obj)
		mutate(ctx)
		Eventually(func() any { // wait until the policy is in force
			merge(`{"metadata":{"labels":{"mutate":"`+strconv.FormatInt(numbers.Add(1), 10)+`"}}}`)(ctx, obj)
			return read(ctx, obj).Object["data"]
		}).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).Should(HaveKeyWithValue("color", "mutated"))
		Expect(l.key(ctx, obj)).To(Equal(before))
		Expect(l.collectDrifts(ctx, configMap)).To(BeEmpty())
	})

	It("a list that becomes a set changes the fingerprint at the next apply of the item, and not before", func(ctx SpecContext) {
		l := newLab(cp.Config)
		m := manifest(shift, sampleBody)
		obj := l.run(ctx, m)[0]
		before := l.key(ctx, obj)
		updateSchema(ctx)
		Expect(l.key(ctx, obj)).To(Equal(before))
		Expect(l.collectDrifts(ctx, shift)).To(BeEmpty())
		var after ownership.Fingerprint
		Eventually(func() ownership.Fingerprint { // wait until the API server uses the new schema
			after = l.send(ctx, m.DeepCopy()).Fingerprint
			return after
		}).WithContext(ctx).WithTimeout(eventuallyTimeout).WithPolling(poll).ShouldNot(Equal(before))
		l.run(ctx, m)
		l.collectDrifts(ctx, shift)
		Expect(l.run(ctx, m)[0].GetResourceVersion()).To(Equal(read(ctx, obj).GetResourceVersion()), "a second apply does not change the object")
		Expect(l.collectDrifts(ctx, shift)).To(BeEmpty())
	})

	It("an apply through another API version changes the fingerprint", func(ctx SpecContext) {
		l := newLab(cp.Config)
		m := manifest(sample, sampleBody)
		obj := l.run(ctx, m)[0]
		before := l.key(ctx, obj)
		inVersion("v2", func(ctx context.Context, other *object) {
			second := m.DeepCopy()
			second.SetGroupVersionKind(other.GroupVersionKind())
			l.owner.Mark(second)
			applyAs(ctx, second, l.owner.FieldManager())
		})(ctx, obj)
		Expect(l.key(ctx, obj)).NotTo(Equal(before))
		Expect(l.collectDrifts(ctx, sample)).To(ConsistOf(HaveField("Reason", observe.DriftReasonChanged)))
	})
})

// mutate installs a policy that overwrites the value "color" of each ConfigMap that has the label mutate.
func mutate(ctx context.Context) {
	GinkgoHelper()
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	policy := &object{Object: map[string]any{
		"metadata": map[string]any{"name": "override"},
		"spec": map[string]any{
			"failurePolicy": "Fail", "reinvocationPolicy": "Never",
			"matchConstraints": map[string]any{
				"objectSelector": map[string]any{"matchExpressions": []any{map[string]any{"key": "mutate", "operator": "Exists"}}},
				"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"UPDATE"}, "resources": []any{"configmaps"},
				}},
			},
			"mutations": []any{map[string]any{
				"patchType":          "ApplyConfiguration",
				"applyConfiguration": map[string]any{"expression": `Object{data: {"color": "mutated"}}`},
			}},
		},
	}}
	policy.SetGroupVersionKind(admission.WithKind("MutatingAdmissionPolicy"))
	binding := &object{Object: map[string]any{
		"metadata": map[string]any{"name": "override"}, "spec": map[string]any{"policyName": "override"},
	}}
	binding.SetGroupVersionKind(admission.WithKind("MutatingAdmissionPolicyBinding"))
	for _, obj := range []*object{policy, binding} {
		Expect(c.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(c.Delete(ctx, obj)).To(Succeed()) })
	}
}

// updateSchema changes the schema of the kind Shift: its atomic list becomes a set.
func updateSchema(ctx context.Context) {
	GinkgoHelper()
	scheme := c.Scheme()
	Expect(apiextv1.AddToScheme(scheme)).To(Succeed())
	crd := &apiextv1.CustomResourceDefinition{}
	Expect(c.Get(ctx, types.NamespacedName{Name: "shifts." + group}, crd)).To(Succeed())
	set := "set"
	for i := range crd.Spec.Versions {
		spec := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		list := spec.Properties["atomic"]
		list.XListType = &set
		spec.Properties["atomic"] = list
	}
	Expect(c.Update(ctx, crd)).To(Succeed())
}
