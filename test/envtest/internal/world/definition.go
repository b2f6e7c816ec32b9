// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Define creates a CustomResourceDefinition for the namespaced kind Sample, in an API group of this world, and waits
// until the API server serves the kind. It returns the kind and a function that removes the definition, together with
// all objects of the kind.
func (w *World) Define(ctx context.Context) (kind schema.GroupVersionKind, remove func()) {
	w.t.Helper()
	type object = map[string]any
	kind = schema.GroupVersionKind{Group: w.Namespace + ".test.deployerkit.dev", Version: "v1", Kind: "Sample"}
	definition := &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "samples." + kind.Group},
		"spec": object{
			"group": kind.Group, "scope": "Namespaced", "names": object{"plural": "samples", "singular": "sample", "kind": "Sample", "listKind": "SampleList"},
			"versions": []any{object{"name": "v1", "served": true, "storage": true, "schema": object{
				"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	w.must(w.Client.Create(ctx, definition))
	remove = func() {
		w.must(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), definition)))
		NewWithT(w.t).Eventually(func() error { return w.Client.Get(ctx, client.ObjectKeyFromObject(definition), definition) }).
			WithTimeout(w.options.Patience).Should(MatchError(apierrors.IsNotFound, "IsNotFound"))
	}
	w.t.Cleanup(func() { w.must(client.IgnoreNotFound(w.Client.Delete(context.WithoutCancel(ctx), definition))) })
	probe := &unstructured.Unstructured{}
	probe.SetGroupVersionKind(kind)
	probe.SetNamespace(w.Namespace)
	probe.SetName("probe")
	NewWithT(w.t).Eventually(func() error { return w.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll) }).
		WithContext(ctx).WithTimeout(w.options.Patience).Should(Succeed())
	return kind, remove
}
