// SPDX-License-Identifier: Apache-2.0

package declarative_test

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var _ = Describe("Children of a kind that the API server does not serve", func() {
	sample := func(kind schema.GroupVersionKind) object {
		return object{"apiVersion": kind.GroupVersion().String(), "kind": kind.Kind, "metadata": object{"name": "a"}, "spec": object{"size": int64(1)}}
	}

	It("does not call the handler until the kind of a child is served again, and deletes the child with the item [F70]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx)
		kind, _ := w.CreateDefinition(ctx)
		w.options.Children = []declarative.ChildKind{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, configMapKind}
		var calls, without atomic.Int32
		w.start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			if calls.Add(1) > 1 && len(req.Children) == 0 {
				without.Add(1)
			}
			return &declarative.SyncResponse{Children: []any{sample(kind)}}, nil
		}))
		Expect(w.CreateAndRun(ctx, "item", config(nil)).Status.Phase).To(Equal(phases.Succeeded))
		w.Serve(ctx, kind)
		_, err := w.Landscaper.Trigger(ctx, w.Key("item"))
		Expect(err).NotTo(HaveOccurred())
		// The job may still succeed with the state that the watch reported last. A background run then waits.
		waits := HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring("Kind=Sample"))))
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(waits)
		w.Serve(ctx, kind, "v1")
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).ShouldNot(waits)
		Expect(without.Load()).To(BeZero(), "calls with a request from which the child is missing")
		w.Delete(ctx, "item")
		_, err = w.GetSample(ctx, kind, "v1", "a")
		Expect(err).To(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}, SpecTimeout(5*time.Minute))

	for name, early := range map[string]bool{"just before the item is created": false, "while the item waits": true} {
		It("creates a child if another program defines its kind "+name+" [F71]", func(ctx SpecContext) {
			w := newEnv(ctx)
			kind := schema.GroupVersionKind{Group: w.Namespace + ".test.deployerkit.dev", Version: "v1", Kind: "Sample"}
			w.options.Children = []declarative.ChildKind{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}, configMapKind}
			w.start(declarative.HandlerFunc(func(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
				if req.Item.Name == "other" {
					return &declarative.SyncResponse{Children: []any{configMap("b", data{"key": "1"})}}, nil
				}
				return &declarative.SyncResponse{Children: []any{sample(kind)}}, nil
			}))
			By("using the target, so that its kinds were discovered a moment ago")
			Expect(w.CreateAndRun(ctx, "other", config(nil)).Status.Phase).To(Equal(phases.Succeeded))
			if early {
				w.Create(ctx, "item", config(nil))
				Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(And(
					HaveField("Status.Phase", phases.Progressing),
					HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring("Kind=Sample"))))))
			}
			w.CreateDefinition(ctx)
			if !early {
				w.Create(ctx, "item", config(nil))
			}
			di := w.Finished(ctx, "item")
			Expect(di.Status.Phase).To(Equal(phases.Succeeded), "lastError: %+v", di.Status.LastError)
			_, err := w.GetSample(ctx, kind, "v1", "a")
			Expect(err).NotTo(HaveOccurred())
			w.Delete(ctx, "item")
		}, SpecTimeout(5*time.Minute))
	}

	It("watches a child as soon as it exists, if the item also contains its definition [F105]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx)
		kind := schema.GroupVersionKind{Group: w.Namespace + ".test.deployerkit.dev", Version: "v1", Kind: "Sample"}
		definitions := declarative.ChildKind{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		w.options.Children = []declarative.ChildKind{definitions, {APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}}
		w.start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return &declarative.SyncResponse{Children: []any{newSampleDefinition(kind), sample(kind)}}, nil
		}))
		Expect(w.CreateAndRun(ctx, "item", config(nil)).Status.Phase).To(Equal(phases.Succeeded))
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Conditions",
			Not(ContainElement(HaveField("Type", managed.ConditionDriftDetection)))))
		live, err := w.GetSample(ctx, kind, "v1", "a")
		Expect(err).NotTo(HaveOccurred())
		live.Object["spec"] = object{"size": int64(2)}
		Expect(w.Client.Update(ctx, live, client.FieldOwner("hand"))).To(Succeed())
		Eventually(func(g Gomega) any {
			live, err := w.GetSample(ctx, kind, "v1", "a")
			g.Expect(err).NotTo(HaveOccurred())
			return live.Object["spec"]
		}).WithTimeout(patience).Should(HaveKeyWithValue("size", int64(1)))
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("creates and watches a child again if its definition is deleted and created again [F100]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx)
		kind, remove := w.CreateDefinition(ctx)
		w.options.Children = []declarative.ChildKind{{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}}
		w.start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			return &declarative.SyncResponse{Children: []any{sample(kind)}}, nil
		}))
		Expect(w.CreateAndRun(ctx, "item", config(nil)).Status.Phase).To(Equal(phases.Succeeded))
		remove()
		reports := HaveField("Status.Conditions", ContainElement(HaveField("Message", ContainSubstring("Sample"))))
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(reports)
		w.CreateDefinition(ctx)
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).ShouldNot(reports)
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.Conditions",
			Not(ContainElement(HaveField("Type", managed.ConditionDriftDetection)))))
		size := func(g Gomega) any {
			live, err := w.GetSample(ctx, kind, "v1", "a")
			g.Expect(err).NotTo(HaveOccurred())
			return live.Object["spec"]
		}
		Eventually(size).WithTimeout(patience).Should(HaveKeyWithValue("size", int64(1)))
		live, err := w.GetSample(ctx, kind, "v1", "a")
		Expect(err).NotTo(HaveOccurred())
		live.Object["spec"] = object{"size": int64(2)}
		Expect(w.Client.Update(ctx, live, client.FieldOwner("hand"))).To(Succeed())
		Eventually(size).WithTimeout(patience).Should(HaveKeyWithValue("size", int64(1)))
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))

	It("creates a child again if its definition is created again with another scope [F99]", world.Slow, func(ctx SpecContext) {
		w := newEnv(ctx)
		kind := schema.GroupVersionKind{Group: w.Namespace + ".test.deployerkit.dev", Version: "v1", Kind: "Sample"}
		var clusterScoped atomic.Bool
		definition := declarative.ChildKind{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		w.options.Children = []declarative.ChildKind{definition, {APIVersion: kind.GroupVersion().String(), Kind: kind.Kind}}
		w.start(declarative.HandlerFunc(func(context.Context, *declarative.SyncRequest) (*declarative.SyncResponse, error) {
			defined, one := newSampleDefinition(kind), sample(kind)
			if clusterScoped.Load() {
				defined["spec"].(object)["scope"] = "Cluster"
			}
			return &declarative.SyncResponse{Children: []any{defined, one}}, nil
		}))
		Expect(w.CreateAndRun(ctx, "item", config(nil)).Status.Phase).To(Equal(phases.Succeeded))

		By("deleting the definition and all objects, and creating it with another scope")
		clusterScoped.Store(true)
		crd := &unstructured.Unstructured{}
		crd.SetAPIVersion("apiextensions.k8s.io/v1")
		crd.SetKind("CustomResourceDefinition")
		crd.SetName("samples." + kind.Group)
		Expect(w.Client.Delete(ctx, crd)).To(Succeed())
		Expect(w.RunAgain(ctx, "item").Status.Phase).To(Equal(phases.Succeeded))
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(kind)
		Eventually(func() error { return w.Client.Get(ctx, client.ObjectKey{Name: "a"}, live) }).WithTimeout(patience).Should(Succeed())
		w.Delete(ctx, "item")
	}, SpecTimeout(5*time.Minute))
})

// newSampleDefinition returns a CustomResourceDefinition of a kind for a handler to return.
func newSampleDefinition(kind schema.GroupVersionKind) object {
	return object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "samples." + kind.Group},
		"spec": object{
			"group": kind.Group, "scope": "Namespaced", "names": object{"plural": "samples", "singular": "sample", "kind": kind.Kind, "listKind": "SampleList"},
			"versions": []any{object{"name": kind.Version, "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}
}
