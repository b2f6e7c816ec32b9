// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/declarative/internal/objects"
)

// NewItem returns a deploy item with generation 1 and the given configuration, which it encodes as JSON. The UID of the
// item is derived from its name. NewItem ends the test if the configuration does not marshal to a JSON object, because
// an API server would reject such an item.
func NewItem(t testing.TB, namespace, name string, config any) *lsv1alpha1.DeployItem {
	t.Helper()
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("encode the configuration: %v", err)
	}
	if len(raw) == 0 || raw[0] != '{' {
		t.Fatalf("the configuration is %s, but an API server accepts only an object", raw)
	}
	return &lsv1alpha1.DeployItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name), Generation: 1},
		Spec:       lsv1alpha1.DeployItemSpec{Configuration: &runtime.RawExtension{Raw: raw}},
	}
}

// Run calls Sync once with the observed children and returns a plan of what the deployer would do. Each child may have
// any form that declarative.SyncResponse.Children accepts. It may also contain a status and fields that only the API
// server sets. Run does not change the item or the children.
//
// Run returns an error if the handler fails, if its response or the options are invalid, if a child cannot be read, or
// if the options do not list the kind of a child.
func Run(ctx context.Context, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children ...any) (*Plan, error) {
	b, req, err := start(handler, options, item, children)
	if err != nil {
		return nil, err
	}
	return b.computePlan(ctx, req)
}

// Finalize calls the handler's method Finalize once with the observed children, as the deployer does when the item is
// deleted. The children have the same form as for Run. If the error is nil, the response is not nil, even if the
// handler returns a nil response.
//
// Finalize returns an error if the handler is not a declarative.Finalizer, or if its method Finalize returns an error.
// It also returns an error if the status or the options are invalid, if a child cannot be read, or if the options do
// not list the kind of a child.
func Finalize(ctx context.Context, handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children ...any) (*declarative.FinalizeResponse, error) {
	finalizer, ok := handler.(declarative.Finalizer)
	if !ok {
		return nil, fmt.Errorf("%T has no method Finalize", handler)
	}
	_, req, err := start(handler, options, item, children)
	if err != nil {
		return nil, err
	}
	response, err := finalizer.Finalize(ctx, req)
	if err != nil {
		return nil, err
	}
	if response == nil {
		response = &declarative.FinalizeResponse{}
	}
	_, err = declarative.EncodeStatus(item, response.Status)
	return response, err
}

// simulation contains a handler and the input for its calls.
type simulation struct {
	handler  declarative.Handler
	options  declarative.Options
	item     *lsv1alpha1.DeployItem
	children []*unstructured.Unstructured
	mapper   meta.RESTMapper
	owner    ownership.Owner
}

// start returns a bench and the first request.
func start(handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children []any) (*simulation, *declarative.SyncRequest, error) {
	b, err := prepare(handler, options, item, children)
	if err != nil {
		return nil, nil, err
	}
	req, err := b.newRequest()
	return b, req, err
}

// prepare checks the options and reads the children.
func prepare(handler declarative.Handler, options declarative.Options, item *lsv1alpha1.DeployItem, children []any) (*simulation, error) {
	options.Default()
	if err := options.Validate(); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	b := &simulation{handler: handler, options: options, item: item}
	b.owner = ownership.Owner{UID: cmp.Or(item.UID, "uid-of-item"), Landscape: clusterID, Namespace: item.Namespace, Name: item.Name}
	configured := map[schema.GroupVersionKind]bool{}
	for _, kind := range options.Children {
		configured[schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)] = true
	}
	for i, child := range children {
		read, err := objects.Read(child)
		if err != nil {
			return nil, fmt.Errorf("observed child %d: %w", i, err)
		}
		for _, one := range read {
			one.FillKind(options.Scheme, func(gvk schema.GroupVersionKind) bool { return configured[gvk] })
			object := &unstructured.Unstructured{Object: one.Body}
			if gvk := object.GroupVersionKind(); !configured[gvk] {
				return nil, fmt.Errorf("observed child %d is a %s %q, which Options.Children does not list, so the handler would never receive it", i, gvk.GroupVersion(), gvk.Kind)
			}
			b.children = append(b.children, object)
		}
	}
	b.mapper = b.newMapper()
	for _, child := range b.children {
		b.setMetadata(child)
	}
	return b, nil
}

// setMetadata adds the metadata that each child of the item has in a cluster: a namespace, a UID, labels and
// annotations.
func (b *simulation) setMetadata(child *unstructured.Unstructured) {
	if child.GetNamespace() == "" && b.isNamespaced(child.GroupVersionKind()) {
		child.SetNamespace(b.item.Namespace)
	}
	if child.GetUID() == "" {
		child.SetUID(types.UID("uid-of-" + strings.ToLower(child.GetKind()) + "-" + child.GetName()))
	}
	b.owner.Mark(child)
	normalize(child)
}

// isNamespaced reports whether objects of a configured kind have a namespace.
func (b *simulation) isNamespaced(gvk schema.GroupVersionKind) bool {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	return err == nil && mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// newRequest returns a new request, in the same form as the deployer creates it.
func (b *simulation) newRequest() (*declarative.SyncRequest, error) {
	children := make([]*unstructured.Unstructured, 0, len(b.children))
	for _, child := range b.children {
		child = child.DeepCopy()
		child.SetManagedFields(nil)
		children = append(children, child)
	}
	return declarative.NewRequest(b.item, nil, children...)
}
