// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"encoding/json"
	"slices"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateDefinition creates a CustomResourceDefinition for the namespaced kind Sample, in an API group of this world,
// and waits until the API server serves the kind. It returns the kind and a function that removes the definition,
// together with all objects of the kind.
func (w *World) CreateDefinition(ctx context.Context) (kind schema.GroupVersionKind, remove func()) {
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

// Serve changes the versions in which the API server serves a kind that CreateDefinition created, and waits for the
// change. The versions are v1, in which the objects are stored, and v2.
func (w *World) Serve(ctx context.Context, kind schema.GroupVersionKind, served ...string) {
	w.t.Helper()
	type object = map[string]any
	versions := []any{}
	for _, name := range []string{"v1", "v2"} {
		versions = append(versions, object{"name": name, "served": slices.Contains(served, name), "storage": name == "v1", "schema": object{
			"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}})
	}
	patch, err := json.Marshal(object{"spec": object{"versions": versions}})
	w.must(err)
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("samples." + kind.Group)
	w.must(w.Client.Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch)))
	for _, version := range []string{"v1", "v2"} {
		NewWithT(w.t).Eventually(func(g Gomega) {
			_, err := w.GetSample(ctx, kind, version, "none")
			isServed := apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) && !apierrors.IsUnexpectedServerError(err)
			g.Expect(isServed).To(Equal(slices.Contains(served, version)), "version %s: %v", version, err)
		}).WithContext(ctx).WithTimeout(w.options.Patience).Should(Succeed())
	}
}

// GetSample reads an object of a kind that CreateDefinition created, in the given version.
func (w *World) GetSample(ctx context.Context, kind schema.GroupVersionKind, version, name string) (*unstructured.Unstructured, error) {
	sample := &unstructured.Unstructured{}
	sample.SetGroupVersionKind(kind.GroupKind().WithVersion(version))
	return sample, w.Client.Get(ctx, w.Key(name), sample)
}
