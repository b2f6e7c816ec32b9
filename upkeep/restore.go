// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/targets"
)

// maxRestored limits how many objects of a kind are found by label.
const maxRestored = 10_000

// LostInventory reports whether the item has run before and has no inventory, so that its objects may only be found
// by their labels. An item that never had objects looks the same. Its objects are searched once per process.
func (r *Run) LostInventory() bool {
	ran := r.background || r.Item.DeletionTimestamp != nil || r.Item.Status.JobIDFinished != ""
	return ran && len(r.Inventory.Entries) == 0 && len(r.Inventory.Former) == 0 && !r.item.searched.Load()
}

// Recover lists the objects of some kinds that carry the item's label, and adds them to the inventory if that was
// lost. The values are the namespaces to search where the target does not allow listing the whole cluster. If
// complete is not nil, it fills in what the deployer knows about an object. Recover costs nothing if the inventory
// was not lost. It returns an error if a kind cannot be listed now; a forbidden list is not an error.
func (r *Run) Recover(ctx context.Context, kinds map[schema.GroupVersionKind]map[string]bool, complete func(*apply.Entry, metav1.Object)) error {
	if !r.LostInventory() {
		return nil
	}
	var found []apply.Entry
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		mapping, err := r.Cluster.Mapping(gvk)
		if err != nil {
			return fmt.Errorf("look up %s: %w", gvk.GroupKind(), err)
		}
		if mapping == nil {
			continue
		}
		entries, err := r.labelled(ctx, gvk, mapping.Resource, kinds[gvk], complete)
		if err != nil {
			return err
		}
		found = append(found, entries...)
	}
	return r.Restore(found)
}

// labelled lists the objects of a kind that belong to the item.
func (r *Run) labelled(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespaces map[string]bool, complete func(*apply.Entry, metav1.Object)) ([]apply.Entry, error) {
	found, err := r.list(ctx, gvk, resource, "", complete)
	if !apierrors.IsForbidden(err) {
		return found, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if namespace == "" {
			continue
		}
		some, err := r.list(ctx, gvk, resource, namespace, complete)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

func (r *Run) list(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespace string, complete func(*apply.Entry, metav1.Object)) ([]apply.Entry, error) {
	held, release := targets.Hold(ctx)
	defer release()
	list, err := r.Cluster.metadata.Resource(resource).Namespace(namespace).List(held,
		metav1.ListOptions{LabelSelector: ownership.LabelItem + "=" + string(r.Item.UID), Limit: maxRestored})
	if err != nil {
		return nil, fmt.Errorf("list %s by label: %w", resource.GroupResource(), err)
	}
	var out []apply.Entry
	for i := range list.Items {
		entry, ours := r.EntryOf(gvk, &list.Items[i])
		if !ours {
			continue
		}
		if complete != nil {
			complete(&entry, &list.Items[i])
		}
		out = append(out, entry)
	}
	return out, nil
}

// EntryOf returns the entry of an inventory for an object that carries the item's marks. It returns false for other
// objects. An object that only has a copy of the label, such as the EndpointSlice of a Service, does not belong to
// the item.
func (r *Run) EntryOf(gvk schema.GroupVersionKind, obj metav1.Object) (apply.Entry, bool) {
	owner, marked := ownership.OwnerOf(obj)
	if !marked || owner.UID != r.Item.UID || owner.Name != r.Item.Name || owner.Namespace != r.Item.Namespace {
		return apply.Entry{}, false
	}
	version, kind := gvk.ToAPIVersionAndKind()
	name := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	return apply.Entry{APIVersion: version, Kind: kind, Namespace: name.Namespace, Name: name.Name, UID: obj.GetUID()}, true
}

// Restore adds objects to an inventory that was lost, in memory, and writes an event about it. It returns the errors
// of Begin's note.
func (r *Run) Restore(found []apply.Entry) error {
	if !r.LostInventory() {
		return nil
	}
	r.item.searched.Store(true)
	if len(found) == 0 {
		return nil
	}
	r.Event(nil, corev1.EventTypeWarning, "InventoryRestored", fmt.Sprintf("the inventory was lost; %d objects carry the labels of the item", len(found)))
	return r.Note(apply.Inventory{Entries: found})
}
