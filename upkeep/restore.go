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

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/targets"
)

// maxRestored is the maximum number of objects of one kind that a search by label returns.
const maxRestored = 10_000

// LostInventory reports whether the inventory may have been lost: there were earlier runs of the item, but the
// inventory is empty. LostInventory returns false if the inventory is marked as empty, because the item then never had
// objects. It also returns false if the process has already searched the objects of the item by their label.
func (r *Run) LostInventory() bool {
	ran := r.background || r.Item.DeletionTimestamp != nil || r.Item.Status.JobIDFinished != ""
	return ran && !r.Inventory.Empty && len(r.Inventory.Entries) == 0 && len(r.Inventory.Former) == 0 && !r.item.searched.Load()
}

// Recover restores a lost inventory. It lists the objects of the given kinds that carry the item's label, and adds them
// to the inventory. If LostInventory returns false, it does nothing. For each kind, `kinds` contains the namespaces
// that are searched if the target does not allow listing the whole cluster. The function `complete` is called for each
// object, so that the deployer can set further fields of the entry. The function may be nil. Recover returns an error
// if a kind cannot be listed for a temporary reason. A forbidden list request is not an error.
func (r *Run) Recover(ctx context.Context, kinds map[schema.GroupVersionKind]map[string]bool, complete func(*apply.Entry, metav1.Object)) error {
	if !r.LostInventory() {
		return nil
	}
	search := search{at: r.Cluster, owner: r.Owner, complete: complete}
	var found []apply.Entry
	for _, gvk := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		mapping, err := r.Cluster.Mapping(gvk)
		if err != nil {
			return fmt.Errorf("find the resource of %s: %w", gvk.GroupKind(), err)
		}
		if mapping == nil {
			continue
		}
		entries, err := search.kind(ctx, gvk, mapping.Resource, kinds[gvk])
		if err != nil {
			return err
		}
		found = append(found, entries...)
	}
	return r.Restore(found)
}

// search finds the objects of an item by label.
type search struct {
	at       *Cluster
	owner    ownership.Owner
	complete func(*apply.Entry, metav1.Object)
}

// kind returns the objects of one kind.
func (s search) kind(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespaces map[string]bool) ([]apply.Entry, error) {
	found, err := s.list(ctx, gvk, resource, "")
	if !apierrors.IsForbidden(err) {
		return found, err
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if namespace == "" {
			continue
		}
		some, err := s.list(ctx, gvk, resource, namespace)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

func (s search) list(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespace string) ([]apply.Entry, error) {
	held, release := targets.Hold(ctx)
	defer release()
	list, err := s.at.metadata.Resource(resource).Namespace(namespace).List(held,
		metav1.ListOptions{LabelSelector: ownership.LabelItem + "=" + string(s.owner.UID), Limit: maxRestored})
	if err != nil {
		return nil, fmt.Errorf("list %s by label: %w", resource.GroupResource(), err)
	}
	var out []apply.Entry
	for i := range list.Items {
		entry, ours := EntryOf(s.owner, gvk, &list.Items[i])
		if !ours {
			continue
		}
		if s.complete != nil {
			s.complete(&entry, &list.Items[i])
		}
		out = append(out, entry)
	}
	return out, nil
}

// EntryOf returns the inventory entry for an object that belongs to an item. It returns false unless the object carries
// both the label and the annotations of the item. The label alone is not sufficient, because Kubernetes copies labels
// to other objects, for example from a Service to its EndpointSlices.
func EntryOf(item ownership.Owner, gvk schema.GroupVersionKind, obj metav1.Object) (apply.Entry, bool) {
	owner, marked := ownership.OwnerOf(obj)
	if !marked || owner.UID != item.UID || owner.Name != item.Name || owner.Namespace != item.Namespace {
		return apply.Entry{}, false
	}
	version, kind := gvk.ToAPIVersionAndKind()
	return apply.Entry{APIVersion: version, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID()}, true
}

// Restore adds the given entries to a lost inventory, and writes an event about this. It changes the item only in
// memory. It returns the error of the function `note` that was passed to Begin.
func (r *Run) Restore(found []apply.Entry) error {
	if !r.LostInventory() {
		return nil
	}
	r.item.searched.Store(true)
	if len(found) == 0 {
		return nil
	}
	r.Event(nil, corev1.EventTypeWarning, "InventoryRestored", fmt.Sprintf("the inventory was lost and was restored from the labels of %d objects", len(found)))
	return r.Note(apply.Inventory{Entries: found})
}
