// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// clusterID is the UID of the namespace kube-system in the in-memory cluster. The UID identifies the cluster, which
// contains both the deploy item and its children.
const clusterID types.UID = "cluster-of-declarativetest"

// heldFinalizer is a finalizer. It prevents the in-memory cluster from removing a child that is being deleted.
const heldFinalizer = "declarativetest.deployerkit.dev/holder"

// getBuiltInMapper returns a mapper for the built-in kinds and their scopes.
var getBuiltInMapper = sync.OnceValue(func() meta.RESTMapper { return testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme) })

// converter converts objects for server-side apply. For an object of a built-in kind, it returns an error if a field is
// unknown, like an API server. For other kinds, it accepts all fields and treats lists as atomic.
type converter struct{ builtIn, other managedfields.TypeConverter }

var newConverter = sync.OnceValue(func() managedfields.TypeConverter {
	return converter{applyconfigurations.NewTypeConverter(scheme.Scheme), managedfields.NewDeducedTypeConverter()}
})

// ObjectToTyped implements managedfields.TypeConverter.
func (c converter) ObjectToTyped(object runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	if scheme.Scheme.Recognizes(object.GetObjectKind().GroupVersionKind()) {
		return c.builtIn.ObjectToTyped(object, options...)
	}
	return c.other.ObjectToTyped(object, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (c converter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	return c.other.TypedToObject(value) // the conversion is the same for all kinds
}

// newMapper returns a mapper for the configured kinds. Kinds that are not built in count as namespaced, unless an
// observed child of the kind has no namespace.
func (b *simulation) newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range b.options.Children {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		if known, err := getBuiltInMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
			mapper.AddSpecific(gvk, known.Resource, known.Resource, known.Scope)
			continue
		}
		scope := meta.RESTScopeNamespace
		if slices.ContainsFunc(b.children, func(c *unstructured.Unstructured) bool { return c.GroupVersionKind() == gvk && c.GetNamespace() == "" }) {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(gvk, scope)
	}
	return mapper
}

// cluster is an in-memory cluster that contains the observed children. Apply and Update change the cluster even in a
// dry run, because a fake client returns no object for a dry run. A cluster can therefore be used for only one plan.
type cluster struct {
	client.Client // an empty fake client, used for kinds that the options do not list, and for methods that a plan does not need

	// kinds contains a separate client for each kind, under the kind of its objects and the kind of its lists. A single
	// fake client would confuse kinds of the same group and version if its scheme does not contain them.
	kinds map[schema.GroupVersionKind]client.Client
}

// newCluster returns a cluster with the observed children.
func (b *simulation) newCluster() (*cluster, error) {
	objects := map[schema.GroupVersionKind][]client.Object{}
	for _, child := range b.children {
		object := child.DeepCopy()
		object.SetResourceVersion("") // the in-memory cluster sets the version itself
		if object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 {
			object.SetFinalizers([]string{heldFinalizer})
		}
		if err := managedfields.ValidateManagedFields(object.GetManagedFields()); err != nil {
			return nil, fmt.Errorf("managedFields of the observed child %s: %w", object.GetName(), err)
		}
		objects[object.GroupVersionKind()] = append(objects[object.GroupVersionKind()], object)
	}
	c := &cluster{Client: b.newFake(), kinds: map[schema.GroupVersionKind]client.Client{}}
	for _, kind := range b.options.Children {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		c.kinds[gvk] = b.newFake(objects[gvk]...)
		c.kinds[gvk.GroupVersion().WithKind(gvk.Kind+"List")] = c.kinds[gvk]
	}
	return c, nil
}

func (b *simulation) newFake(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithRESTMapper(b.mapper).
		WithTypeConverters(newConverter()).WithReturnManagedFields().WithObjects(objects...).Build()
}

// getClient returns the client for one kind. The argument is an object of this kind, or a list of such objects.
func (c *cluster) getClient(object any) client.Client {
	if kind, ok := object.(schema.ObjectKind); ok {
		if found := c.kinds[kind.GroupVersionKind()]; found != nil {
			return found
		}
	}
	return c.Client
}

// Get implements client.Client. It always finds the namespace kube-system, whose UID identifies the cluster, and never
// finds a Target.
func (c *cluster) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	switch object := object.(type) {
	case *corev1.Namespace:
		if key.Name == metav1.NamespaceSystem {
			object.Name, object.UID = key.Name, clusterID
			return nil
		}
	case *lsv1alpha1.Target:
		return apierrors.NewNotFound(lsv1alpha1.Resource("targets"), key.Name)
	}
	return c.getClient(object).Get(ctx, key, object, options...)
}

// List implements client.Client.
func (c *cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.getClient(list).List(ctx, list, options...)
}

// Apply implements client.Client.
func (c *cluster) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	all := (&client.ApplyOptions{}).ApplyOptions(options)
	all.DryRun = nil
	normalize(object)
	return c.getClient(object).Apply(ctx, object, all)
}

// Create implements client.Client.
func (c *cluster) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	normalize(object)
	return c.getClient(object).Create(ctx, object, options...)
}

// Update implements client.Client.
func (c *cluster) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	all := (&client.UpdateOptions{}).ApplyOptions(options)
	all.DryRun = nil
	normalize(object)
	return c.getClient(object).Update(ctx, object, all)
}

// Patch implements client.Client.
func (c *cluster) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.getClient(object).Patch(ctx, object, patch, options...)
}

// Delete implements client.Client.
func (c *cluster) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return c.getClient(object).Delete(ctx, object, options...)
}
