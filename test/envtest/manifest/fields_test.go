// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// newDefinition returns a CustomResourceDefinition with the status that old generators write.
func newDefinition(kind string) map[string]any {
	plural := strings.ToLower(kind) + "s"
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".fields.example.org"},
		"spec": map[string]any{
			"group": "fields.example.org", "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}, "subresources": map[string]any{"status": map[string]any{}},
			}},
		},
		"status": map[string]any{"acceptedNames": map[string]any{"kind": "", "plural": ""}, "conditions": []any{}, "storedVersions": []any{}},
	}
}

// updateStatus writes the status of an object as its controller.
func (w *env) updateStatus(ctx context.Context, kind, name string) {
	GinkgoHelper()
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "fields.example.org/v1", "kind": kind}}
	Eventually(func(g Gomega) {
		g.Expect(w.Client.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name}, obj)).To(Succeed())
		obj.Object["status"] = map[string]any{"phase": "Ready", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		g.Expect(w.Client.Status().Update(ctx, obj)).To(Succeed())
	}).WithTimeout(patience).Should(Succeed())
}

var _ = Describe("Manifests with a status", func() {
	for i, strategy := range strategies {
		It("ignores the status in a manifest, so that a job without changes writes nothing, under the strategy "+strategy+" [F101]", func(ctx SpecContext) {
			w := newEnv(ctx, contract.RevisionJobID).start()
			kind := []string{"Lamp", "Bulb", "Torch", "Candle", "Lantern"}[i]
			object := map[string]any{
				"apiVersion": "fields.example.org/v1", "kind": kind, "metadata": map[string]any{"namespace": w.Namespace, "name": "a"},
				"spec": map[string]any{"on": true}, "status": map[string]any{"phase": "Pending", "conditions": []any{}},
			}
			w.Create(ctx, "item", config(map[string]any{"updateStrategy": strategy}, newDefinition(kind), object))
			w.updateStatus(ctx, kind, "a")
			Expect(w.Finished(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
			w.WaitUntilQuiet(ctx)
			before := w.Counter.Snapshot()
			for range 3 {
				Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
			}
			_, writes := w.GetRequestCounts(before)
			Expect(writes).To(BeZero(), "requests: %s", w.Counter.Snapshot().Since(before))
		}, SpecTimeout(5*time.Minute))
	}
})

var _ = Describe("Lists in manifests", func() {
	It("passes the kind of a list to its items without a kind, and accepts lists in lists [F102]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID).start()
		item := func(name string) map[string]any {
			return map[string]any{"metadata": map[string]any{"namespace": w.Namespace, "name": name}, "data": map[string]any{"key": name}}
		}
		w.CreateAndRun(ctx, "item", config(nil, map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMapList", "items": []any{item("a"), item("b")}}, w.configMap("c", map[string]string{"key": "c"}),
		}}))
		for _, name := range []string{"a", "b", "c"} {
			Expect(w.Read(ctx, name).Data).To(HaveKeyWithValue("key", name))
		}
	}, SpecTimeout(5*time.Minute))
})
