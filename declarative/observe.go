// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"context"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/managed"
)

// listChildren returns a snapshot of the item's children.
//
// The snapshot contains all watched objects that carry the item's label, and all objects in the inventory. If the
// watches do not contain the current version of an object in the inventory, the object is read from the target. The
// snapshot therefore always includes the last writes of the deployer. If the target does not serve a kind at the
// moment, so that children may be missing, listChildren returns a [deployerlib.WaitFor].
func (r *run) listChildren(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	r.done = nil
	r.unobserved = map[schema.GroupKind]bool{}
	for _, kind := range r.deployer.options.Children {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		entries := filterEntries(r.managed.Inventory, gvk.GroupKind())
		mapping, err := r.managed.Cluster.GetMapping(gvk)
		if meta.IsNoMatchError(err) && len(entries) == 0 {
			continue // the item has no children of a kind that a complete discovery does not contain
		}
		if err != nil {
			mapping, err = r.managed.Cluster.FindMapping(ctx, gvk)
		}
		if err != nil {
			return nil, err
		}
		if mapping == nil {
			continue // the kind and its objects are gone
		}
		found, err := r.listKind(ctx, gvk, mapping.Resource, entries)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// filterEntries returns the entries of an inventory for objects of a kind.
func filterEntries(inventory apply.Inventory, kind schema.GroupKind) []apply.Entry {
	var out []apply.Entry
	for _, entry := range inventory.Entries {
		if entry.Ref().GVK().GroupKind() == kind {
			out = append(out, entry)
		}
	}
	return out
}

// listSearchNamespaces returns the namespaces in which an item has or may have children.
func (o *Options) listSearchNamespaces(di *lsv1alpha1.DeployItem, entries []apply.Entry) []string {
	places := sets.New(o.getNamespaces(di)...)
	for _, entry := range entries {
		places.Insert(entry.Namespace)
	}
	places.Delete("", AnyNamespace) // the namespace of a cluster-scoped object is empty
	return sets.List(places)
}

// listKind returns the children of a kind.
func (r *run) listKind(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, entries []apply.Entry) ([]*unstructured.Unstructured, error) {
	coverage, err := r.watcher.WatchObjects(ctx, resource, r.deployer.options.listSearchNamespaces(r.item, entries)...)
	if err != nil {
		return nil, err
	}
	r.unobserved[gvk.GroupKind()] = !coverage.IsComplete()
	found := map[types.NamespacedName]*unstructured.Unstructured{}
	for _, entry := range entries {
		if found[entry.Ref().Key()], err = r.readChild(ctx, gvk, resource, entry); err != nil {
			return nil, err
		}
	}
	for _, name := range r.watcher.ListObjects(resource, r.managed.Owner) {
		if _, listed := found[name]; !listed {
			found[name], _ = r.watcher.GetObject(ctx, resource, name)
		}
	}
	out := make([]*unstructured.Unstructured, 0, len(found))
	for _, name := range slices.SortedFunc(maps.Keys(found), compareNames) {
		if found[name] != nil {
			out = append(out, found[name])
		}
	}
	return out, nil
}

// readChild returns the object of an inventory entry, or nil if it does not exist. It records an object that has
// finished its work and is gone.
func (r *run) readChild(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, entry apply.Entry) (*unstructured.Unstructured, error) {
	obj := r.getWatched(ctx, resource, entry)
	if obj == nil {
		var err error
		if obj, err = r.read(ctx, gvk, entry); err != nil {
			return nil, err
		}
	}
	if obj == nil && entry.Finish.IsDone() {
		r.done = append(r.done, entry.Ref())
	}
	r.managed.RecordFinish(entry.Ref(), obj)
	return obj, nil
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// getWatched returns an object of the inventory as the watches last reported it, or nil if no watch contains its
// current version. The object may exist even if the result is nil, because the watches ignore objects that have lost
// the item's label.
func (r *run) getWatched(ctx context.Context, resource schema.GroupVersionResource, entry apply.Entry) *unstructured.Unstructured {
	obj, current := r.watcher.GetObject(ctx, resource, entry.Ref().Key())
	if obj == nil || !current || !isOwn(obj, r.managed.Owner) {
		return nil
	}
	return obj
}

// read reads an object of the inventory from the target. It returns nil if the object does not exist or does not belong
// to the item.
func (r *run) read(ctx context.Context, gvk schema.GroupVersionKind, entry apply.Entry) (*unstructured.Unstructured, error) {
	ref := entry.Ref()
	ref.APIVersion = gvk.GroupVersion().String()
	obj, err := r.managed.Cluster.Read(ctx, ref)
	if err != nil || obj == nil || obj.GetUID() != entry.UID && !isOwn(obj, r.managed.Owner) {
		return nil, err
	}
	obj.SetManagedFields(nil)
	return obj, nil
}

// restoreInventory restores a lost inventory. It finds the children of the item by their labels.
func (r *run) restoreInventory(ctx context.Context) error {
	if !r.managed.HasLostInventory() {
		return r.managed.RestoreInventory(ctx, managed.Search{})
	}
	places := map[string]bool{}
	for _, namespace := range r.deployer.options.listSearchNamespaces(r.item, nil) {
		places[namespace] = true
	}
	kinds := map[schema.GroupVersionKind]map[string]bool{}
	for _, kind := range r.deployer.options.Children {
		kinds[schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)] = places
	}
	return r.managed.RestoreInventory(ctx, managed.Search{Kinds: kinds})
}

// isOwn reports whether an object carries the label and annotations of the item, or of an earlier item with the same
// name.
func isOwn(obj *unstructured.Unstructured, item ownership.Owner) bool {
	owner, marked := ownership.GetOwner(obj)
	return marked && owner.IsSameItem(item)
}
