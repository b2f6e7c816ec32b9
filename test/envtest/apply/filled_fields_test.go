// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

var _ = Describe("Deployments whose replicas are null in the manifest", func() {
	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMergeOverwrite} {
		It("keeps the replicas and the finalizers that other managers have set; strategy "+string(strategy)+" [F97]", func(ctx SpecContext) {
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

var _ = Describe("Secrets for a certificate whose keys are empty in the manifest", func() {
	certificate := func(w *env, value string, data map[string]any) apply.Desired {
		return w.manifest("v1", "Secret", "certificate", map[string]any{
			"type": string(corev1.SecretTypeTLS), "data": data,
			"metadata": map[string]any{"namespace": w.namespace, "name": "certificate", "annotations": map[string]any{"value": value}},
		})
	}
	empty := map[string]any{corev1.TLSCertKey: "", corev1.TLSPrivateKeyKey: ""}
	filled := map[string][]byte{corev1.TLSCertKey: []byte("c"), corev1.TLSPrivateKeyKey: []byte("k")}
	read := func(ctx context.Context, w *env) *corev1.Secret {
		GinkgoHelper()
		secret := &corev1.Secret{}
		Expect(direct.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: "certificate"}, secret)).To(Succeed())
		return secret
	}
	fill := func(ctx context.Context, w *env, keys ...string) {
		GinkgoHelper()
		secret := read(ctx, w)
		for _, key := range keys {
			secret.Data[key] = filled[key]
		}
		Expect(direct.Update(ctx, secret, client.FieldOwner("issuer"))).To(Succeed())
	}

	for _, strategy := range []apply.Strategy{apply.StrategyApply, apply.StrategyRecreate, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite} {
		It("keeps the certificate that another program has issued; strategy "+string(strategy)+" [F97]", func(ctx SpecContext) {
			w := newEnv(ctx)
			want := func(value string) apply.Desired {
				d := certificate(w, value, empty)
				d.Strategy = strategy
				return d
			}
			w.apply(ctx, want("1"))
			uid := read(ctx, w).UID
			fill(ctx, w, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
			w.apply(ctx, want("1"))
			Expect(read(ctx, w).UID).To(Equal(uid))
			Expect(read(ctx, w).Data).To(Equal(filled))
			Expect(w.recordRequests(func() { w.apply(ctx, want("1")) }).OnlyWrites().Sum()).To(BeZero())
			if strategy != apply.StrategyRecreate { // this strategy deletes the object together with its data
				w.apply(ctx, want("2"))
				Expect(read(ctx, w).Data).To(Equal(filled))
			}
		})
	}

	It("changes a Secret with a second request if its keys are not filled yet, and keeps a key that is filled [F97]", func(ctx SpecContext) {
		w := newEnv(ctx)
		Expect(w.recordRequests(func() { w.apply(ctx, certificate(w, "1", empty)) }).OnlyWrites().Sum()).To(Equal(1))
		Expect(w.recordRequests(func() { w.apply(ctx, certificate(w, "2", empty)) }).OnlyWrites().Sum()).To(Equal(2))
		Expect(read(ctx, w).Annotations).To(HaveKeyWithValue("value", "2"))
		fill(ctx, w, corev1.TLSCertKey)
		w.apply(ctx, certificate(w, "3", empty))
		Expect(read(ctx, w).Annotations).To(HaveKeyWithValue("value", "3"))
		Expect(read(ctx, w).Data).To(HaveKeyWithValue(corev1.TLSCertKey, filled[corev1.TLSCertKey]))
	})

	It("adopts a Secret together with the certificate that it contains [F97]", func(ctx SpecContext) {
		w := newEnv(ctx)
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "certificate"}, Type: corev1.SecretTypeTLS, Data: filled}
		Expect(direct.Create(ctx, theirs, client.FieldOwner("issuer"))).To(Succeed())
		w.apply(ctx, certificate(w, "1", empty))
		Expect(read(ctx, w).Data).To(Equal(filled))
		Expect(read(ctx, w).Annotations).To(HaveKeyWithValue("value", "1"))
	})

	It("removes a certificate that the manifest contained before [F97]", func(ctx SpecContext) {
		w := newEnv(ctx)
		w.apply(ctx, certificate(w, "1", map[string]any{corev1.TLSCertKey: "Yw==", corev1.TLSPrivateKeyKey: "aw=="}))
		w.apply(ctx, certificate(w, "1", empty))
		Expect(read(ctx, w).Data).To(HaveEach(BeEmpty()))
	})
})
