// SPDX-License-Identifier: Apache-2.0

package stategraph_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/stategraph"
)

var bucketKind = schema.GroupVersionKind{Group: "status.test.deployerkit.dev", Version: "v1", Kind: "Bucket"}

// createBucketDefinition installs the definition of a kind whose status contains neither conditions nor
// observedGeneration.
func (w *env) createBucketDefinition(ctx context.Context) {
	GinkgoHelper()
	text := map[string]any{"type": "string"}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "buckets." + bucketKind.Group},
		"spec": map[string]any{
			"group": bucketKind.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": bucketKind.Kind, "plural": "buckets", "singular": "bucket", "listKind": "BucketList"},
			"versions": []any{map[string]any{
				"name": bucketKind.Version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec":   map[string]any{"type": "object", "properties": map[string]any{"size": text}},
					"status": map[string]any{"type": "object", "properties": map[string]any{"endpoint": text}},
				}}},
			}},
		},
	}}
	Expect(client.IgnoreAlreadyExists(w.Client.Create(ctx, definition))).To(Succeed())
	Eventually(func(g Gomega) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(bucketKind)
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
	}).WithTimeout(patience).Should(Succeed())
}

// newBucket is the body of a component. It returns a Bucket.
func newBucket(ctx context.Context) (*unstructured.Unstructured, error) {
	item, err := stategraph.Item(ctx)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "1Gi"}}}
	obj.SetGroupVersionKind(bucketKind)
	obj.SetNamespace(item.Namespace)
	obj.SetName(item.Name)
	return obj, nil
}

// listEvents returns a function for Eventually that lists the events of an item with the reason ReadinessUnknown.
func (w *env) listEvents(ctx context.Context, name string) func(Gomega) []string {
	return func(g Gomega) []string {
		list := &eventsv1.EventList{}
		g.Expect(w.Client.List(ctx, list, client.InNamespace(w.Namespace))).To(Succeed())
		notes := []string{}
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Name == name && e.Reason == "ReadinessUnknown" {
				notes = append(notes, e.Note)
			}
		}
		return notes
	}
}

var _ = Describe("Objects whose status has an unknown shape", func() {
	It("an object is not ready until it has a status or the grace period is over, which is reported [F35]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.createBucketDefinition(ctx)
		graph := stategraph.NewBuilder().Add("bucket", stategraph.Object(newBucket)).Add("behind", newConfigMap("behind"), "bucket")
		w.options.StatusGrace = time.Hour
		w.start(build(graph))
		w.begin(ctx, "item", settings{Value: "a"})
		Eventually(w.getStates(ctx, "item")).WithTimeout(patience).Should(Equal(map[string]string{"bucket": "Progressing", "behind": "Blocked"}))
		Expect(w.condition(ctx, "item")(NewGomega(Fail))).To(ContainSubstring("has no status yet; without a status, it counts as ready 1h0m0s after its creation"))
		Expect(w.listEvents(ctx, "item")(NewGomega(Fail))).To(BeEmpty())

		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(bucketKind)
		Expect(w.Client.Get(ctx, w.Key("item"), live)).To(Succeed())
		live.Object["status"] = map[string]any{"endpoint": "example.org"}
		Expect(w.Client.Status().Update(ctx, live, client.FieldOwner("someone"))).To(Succeed())
		w.waitUntilSucceeded(ctx, "item")
		Eventually(w.listEvents(ctx, "item")).WithTimeout(patience).Should(ConsistOf(ContainSubstring(
			"counts as ready: its status has neither conditions nor observedGeneration")))
	}, SpecTimeout(5*time.Minute))

	It("an object without a status is ready after the grace period, also when nothing changes [F35]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		w.createBucketDefinition(ctx)
		w.options.StatusGrace = 2 * time.Second
		w.start(build(stategraph.NewBuilder().Add("bucket", stategraph.Object(newBucket)).Add("behind", newConfigMap("behind"), "bucket")))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		behind, live := &corev1.ConfigMap{}, &unstructured.Unstructured{}
		live.SetGroupVersionKind(bucketKind)
		Expect(w.Client.Get(ctx, w.Key("item"), live)).To(Succeed())
		Expect(w.Client.Get(ctx, w.Key("item-behind"), behind)).To(Succeed())
		Expect(behind.CreationTimestamp.Sub(live.GetCreationTimestamp().Time)).To(BeNumerically(">=", 2*time.Second))
		Eventually(w.listEvents(ctx, "item")).WithTimeout(patience).Should(HaveLen(1))
	}, SpecTimeout(5*time.Minute))
})

var _ = Describe("Immutable fields", func() {
	It("a component with a changed immutable field fails, and the error names the field and the possible solutions [F42]", func(ctx SpecContext) {
		w := newEnv(ctx, contract.RevisionJobID)
		database := func(ctx stategraph.Context[settings]) (*appsv1.StatefulSet, error) {
			labels := map[string]string{"app": ctx.Item.Name}
			return &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: ctx.Item.Namespace, Name: ctx.Item.Name},
				Spec: appsv1.StatefulSetSpec{
					Replicas: new(int32(0)), ServiceName: ctx.Config.Value, Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{
						ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "database", Image: "none"}}},
					},
				},
			}, nil
		}
		w.start(build(stategraph.NewBuilderOf[settings]().Add("database", stategraph.Object(stategraph.WithConfig(database)))))
		w.runSuccessfully(ctx, "item", settings{Value: "a"})
		w.beginUpdate(ctx, "item", settings{Value: "b"})
		Eventually(w.ReadItem(ctx, "item")).WithTimeout(patience).Should(HaveField("Status.LastError", HaveField("Message", And(
			ContainSubstring("component database: "), ContainSubstring("spec.serviceName"),
			ContainSubstring("the option WithStrategy(apply.Recreate)"),
		))))
	}, SpecTimeout(5*time.Minute))
})
