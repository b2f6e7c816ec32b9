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

var _ = Describe("A Deployment whose replicas are null in the manifest", func() {
	for _, strategy := range []apply.Strategy{apply.Apply, apply.Update, apply.Patch, apply.MergeOverwrite} {
		It("keeps the replicas and the finalizers that other programs have set; strategy "+string(strategy)+" [F97]", func(ctx SpecContext) {
			w := newEnv(ctx)
			deployment := func(image string) apply.Desired {
				d := w.manifest("apps/v1", "Deployment", "web", map[string]any{"spec": map[string]any{
					"replicas": nil, "selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
					"template": map[string]any{
						"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
						"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": image}}},
					},
				}})
				d.Object.SetFinalizers([]string{})
				d.Strategy = strategy
				return d
			}
			w.apply(ctx, deployment("web:1"))
			live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
			live.SetNamespace(w.namespace)
			live.SetName("web")
			patch := []byte(`{"metadata":{"finalizers":["example.org/clean-up"]},"spec":{"replicas":3}}`)
			Expect(direct.Patch(ctx, live, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("autoscaler"))).To(Succeed())
			for _, image := range []string{"web:1", "web:2"} {
				w.apply(ctx, deployment(image))
				Expect(direct.Get(ctx, client.ObjectKeyFromObject(live), live)).To(Succeed())
				Expect(live.Object["spec"]).To(HaveKeyWithValue("replicas", int64(3)), "after the image %s", image)
				Expect(live.GetFinalizers()).To(ConsistOf("example.org/clean-up"), "after the image %s", image)
			}
			Expect(direct.Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		})
	}
})
