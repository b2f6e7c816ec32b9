// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// createVersionedKind creates the kind Sample in an API group of its own, with the versions v1 and v1beta1. It returns
// the API group and a function that removes the version v1beta1.
func (w *env) createVersionedKind(ctx SpecContext) (group string, remove func()) {
	GinkgoHelper()
	group = w.namespace + ".test.deployerkit.dev"
	version := func(name string, storage bool) map[string]any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "samples." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
			"versions": []any{version("v1", true), version("v1beta1", false)},
		},
	}}
	Expect(direct.Create(ctx, definition)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) { Expect(direct.Delete(ctx, definition)).To(Succeed()) })
	served := func(version string) error {
		probe := w.manifest(group+"/"+version, "Sample", "probe", nil).Object.DeepCopy()
		probe.SetNamespace(w.namespace)
		return direct.Create(ctx, probe, client.DryRunAll)
	}
	Eventually(served).WithArguments("v1beta1").WithTimeout(waitTimeout).Should(Succeed())
	return group, func() {
		patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/spec/versions/1"}]`))
		Expect(direct.Patch(ctx, definition, patch)).To(Succeed())
		Eventually(served).WithArguments("v1beta1").WithTimeout(waitTimeout).ShouldNot(Succeed())
	}
}

var _ = Describe("Objects in an API version that is removed", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyRecreate, apply.StrategyOnDelete, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite} {
		It("writes and deletes an object in another version, with one event about the change; strategy "+string(strategy)+" [F95]", func(ctx SpecContext) {
			w := newEnv(ctx)
			group, remove := w.createVersionedKind(ctx)
			sample := func(version string, spec map[string]any) apply.Desired {
				d := w.manifest(group+"/"+version, "Sample", "a", map[string]any{"spec": spec})
				d.Strategy = strategy
				return d
			}
			w.apply(ctx, sample("v1beta1", map[string]any{"size": int64(1), "old": "value"}))
			remove()
			w.newClient(nil)
			w.apply(ctx, sample("v1", map[string]any{"size": int64(2)}))
			live := &unstructured.Unstructured{}
			live.SetAPIVersion(group + "/v1")
			live.SetKind("Sample")
			Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "a"}, live)).To(Succeed())
			switch strategy {
			case apply.StrategyOnDelete, apply.StrategyMerge: // keep values that exist
				Expect(live.Object["spec"]).To(HaveKeyWithValue("size", int64(1)))
			case apply.StrategyApply, apply.StrategyRecreate, apply.StrategyUpdate:
				Expect(live.Object["spec"]).To(Equal(map[string]any{"size": int64(2)}), "the field that left the manifest is removed")
			default:
				Expect(live.Object["spec"]).To(HaveKeyWithValue("size", int64(2)))
			}
			if strategy == apply.StrategyApply {
				Expect(live.GetManagedFields()).To(HaveEach(HaveField("APIVersion", group+"/v1")))
			}
			w.apply(ctx, sample("v1", map[string]any{"size": int64(3)}))
			about := 0
			for _, e := range w.events {
				if e.Reason == apply.ReasonMigrated {
					about++
				}
			}
			if strategy == apply.StrategyApply {
				Expect(about).To(Equal(1), "events: %v", w.events)
			} else {
				Expect(about).To(BeNumerically("<=", 1), "events: %v", w.events)
			}
			w.delete(ctx)
			Expect(w.stored.Entries).To(BeEmpty())
		})
	}
})
