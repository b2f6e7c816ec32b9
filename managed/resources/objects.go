// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"context"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// objectLookup reads objects for custom checks and exports. It reads them from the item's own target, or from another
// target that the check or export names.
type objectLookup struct {
	run  *Run
	path string // the field that contains the name of the target
	name string // the name of the target, or "" for the item's own target
}

// Get reads an object. It ignores the namespace of the reference if the kind is cluster-scoped. If the object belongs
// to the item and is gone because it has finished its work, Get returns readiness.ErrFinished.
func (o objectLookup) Get(ctx context.Context, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	from, err := o.run.Managed.OpenTarget(ctx, o.path, o.name)
	if err != nil {
		return nil, err
	}
	wanted := apply.Ref{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	mapping, err := from.FindMapping(ctx, wanted.GVK())
	if err != nil || mapping == nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		wanted.Namespace = ""
	}
	live, err := from.Read(ctx, wanted)
	if err == nil {
		o.run.watched = append(o.run.watched, from.Watcher().ForObject(mapping.Resource, wanted.Key(), live))
	}
	if err == nil && live == nil && o.name == "" && o.run.isDone(wanted) {
		return nil, readiness.ErrFinished
	}
	return live, err
}

// isDone reports whether an object of the item that does not exist has finished its work.
func (r *Run) isDone(ref apply.Ref) bool {
	return slices.ContainsFunc(r.Managed.Inventory.Entries, func(e apply.Entry) bool {
		is := e.Ref()
		return is.GVK().GroupKind() == ref.GVK().GroupKind() && is.Key() == ref.Key() && e.Finish.IsDone()
	})
}

// List lists the objects of a kind that have all the given labels, in all namespaces.
func (o objectLookup) List(ctx context.Context, gvk schema.GroupVersionKind, wanted map[string]string) ([]*unstructured.Unstructured, error) {
	from, err := o.run.Managed.OpenTarget(ctx, o.path, o.name)
	if err != nil {
		return nil, err
	}
	mapping, err := from.FindMapping(ctx, gvk)
	if err != nil || mapping == nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk)
	if err = from.List(ctx, list, client.MatchingLabels(wanted)); err != nil {
		return nil, fmt.Errorf("list %s: %w", gvk.Kind, err)
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	o.run.watched = append(o.run.watched, from.Watcher().ForLabels(mapping.Resource, wanted, out))
	return out, nil
}

// readExported reads an object for an export.
func (r *Run) readExported(ctx context.Context, targetName string, ref lsv1alpha1.TypedObjectReference) (*unstructured.Unstructured, error) {
	return objectLookup{run: r, path: "spec.config.exports.targetName", name: targetName}.Get(ctx, ref)
}
