// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/absence"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/targets"
)

// These constants limit the search for the objects of an item.
const (
	maxListed     = 10_000      // the objects that the search reads per kind
	maxFound      = 1 << 20     // the size of the names and UIDs of all objects of the item, in bytes
	maxPages      = 100         // the requests per kind and namespace
	pageSize      = 500         // the objects per request
	maxKinds      = 1000        // the kinds that the configuration of the item does not name
	maxNamespaces = 20          // the namespaces per kind that may not be listed in the whole cluster
	maxSearch     = time.Minute // the time for the known kinds, and for the other kinds
	maxSearches   = 3           // the attempts before the search goes on without a kind that cannot be listed
	maxNamedKinds = 20          // the kinds that an event names
)

// HasLostInventory reports whether the inventory may have been lost: it is empty, but it is not marked as empty. The
// first call for an item sets this mark (see ResourceManager.Begin), so an item without the mark may have objects.
// HasLostInventory returns false if the process has already searched the objects of the item.
func (r *Run) HasLostInventory() bool {
	return !r.Inventory.Empty && len(r.Inventory.Entries) == 0 && len(r.Inventory.Former) == 0 && !r.item.searched.Load()
}

// Search describes how Run.RestoreInventory searches the objects of an item.
type Search struct {
	// Kinds contains the kinds that the item is known to use. The search fails if one of them cannot be listed for a
	// temporary reason. For each kind, the map contains the namespaces that are searched if the target does not allow
	// listing the whole cluster.
	Kinds map[schema.GroupVersionKind]map[string]bool
	// SharedKinds contains the kinds whose objects may belong to several items. If it is nil, apply.DefaultSharedKinds
	// is used, as in apply.Options.
	SharedKinds []schema.GroupKind
	// Complete is called for each object that was found, so that the deployer can set further fields of the entry. It
	// may be nil.
	Complete func(*apply.Entry, metav1.Object)
}

// RestoreInventory restores a lost inventory. It lists the objects that carry the item's label, first of the given
// kinds and then of all other kinds of the target that can be listed and deleted, and adds them to the inventory. If
// some objects cannot be searched, for example because the target forbids it, RestoreInventory writes an event that
// names their kinds. It returns an error if the search must be repeated. If HasLostInventory returns false,
// RestoreInventory only adds objects that a watch has reported and that the inventory does not contain.
func (r *Run) RestoreInventory(ctx context.Context, by Search) error {
	if !r.HasLostInventory() {
		return r.addUnknownObjects(ctx, by.Complete)
	}
	if by.SharedKinds == nil {
		by.SharedKinds = apply.DefaultSharedKinds()
	}
	s := &search{Search: by, run: r, done: map[schema.GroupResource]bool{}, found: map[types.UID]apply.Entry{}}
	if err := s.searchKnownKinds(ctx); err != nil {
		return err
	}
	if err := s.searchOtherKinds(ctx); err != nil {
		return err
	}
	return r.finishSearch(s)
}

// finishSearch ends a search. It adds the objects to the inventory, and writes events about the result.
func (r *Run) finishSearch(s *search) error {
	r.item.searched.Store(true)
	if len(s.missed) > 0 {
		slices.Sort(s.missed)
		s.missed = slices.Compact(s.missed)
		names := s.missed[:min(len(s.missed), maxNamedKinds)]
		text := "the inventory was lost, and objects of these kinds may remain, because they could not be searched in all namespaces: " + strings.Join(names, ", ")
		if more := len(s.missed) - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		r.RecordEvent(nil, corev1.EventTypeWarning, "SearchIncomplete", oneLine(text+"; "+r.formatSearchScope()))
	}
	entries := slices.SortedFunc(maps.Values(s.found), func(a, b apply.Entry) int { return strings.Compare(a.Ref().String(), b.Ref().String()) })
	if len(entries) == 0 && len(s.missed) > 0 {
		return nil
	}
	r.RecordEvent(nil, corev1.EventTypeWarning, "InventoryRestored", fmt.Sprintf("the inventory was lost and was restored from the labels of %d objects; %s",
		len(entries), r.formatSearchScope()))
	if len(entries) == 0 {
		r.Inventory.Empty = true
		return r.SetInventory(r.Inventory)
	}
	return r.SetInventory(apply.Inventory{Entries: entries})
}

// RecordUnsearchedEvent writes an event if the inventory was lost and the item has no Target, so that no cluster can be
// searched for the objects of the item. Call it when such an item is deleted.
func (r *Run) RecordUnsearchedEvent() {
	if r.HasLostInventory() {
		r.RecordEvent(nil, corev1.EventTypeWarning, "SearchIncomplete", "the inventory was lost, and the deploy item has no Target, so no cluster was searched; "+
			"objects may remain in a cluster to which the item was deployed before")
	}
}

// formatSearchScope returns text for the events of a search. The inventory also named the clusters that the item has
// left.
func (r *Run) formatSearchScope() string {
	target := "the current Target"
	if r.Item.Spec.Target != nil {
		target = "the Target " + r.Item.Spec.Target.Name
	}
	return "only the cluster of " + target + " was searched, so objects may remain in a cluster to which the item was deployed before"
}

// search finds the objects of an item by label.
type search struct {
	Search
	run    *Run
	done   map[schema.GroupResource]bool
	found  map[types.UID]apply.Entry // by UID, because several API groups may contain the same objects
	size   int                       // the size of the names and UIDs in found, in bytes
	missed []string                  // the resources that were not searched completely
}

// searchKnownKinds searches the kinds that the item is known to use.
func (s *search) searchKnownKinds(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()
	for _, gvk := range slices.SortedFunc(maps.Keys(s.Kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		mapping, err := s.run.Cluster.FindMapping(ctx, gvk)
		if absence.ClassifyError(absence.Object{Kind: gvk.GroupKind()}, err) == absence.MeaningNotAllowed {
			s.missed = append(s.missed, gvk.GroupKind().String())
			continue
		}
		if err != nil {
			return err
		}
		if mapping == nil || s.done[mapping.Resource.GroupResource()] {
			continue
		}
		if err := s.searchKind(ctx, gvk, mapping.Resource, s.Kinds[gvk]); err != nil {
			return err
		}
	}
	return nil
}

// searchOtherKinds searches the other kinds of the target. If a kind cannot be listed for a temporary reason,
// searchOtherKinds returns an error. After several such errors, it goes on without this kind.
func (s *search) searchOtherKinds(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, maxSearch)
	defer cancel()
	resources, missing, err := s.run.Cluster.listDeletable(within)
	if err != nil {
		return err
	}
	s.missed = append(s.missed, missing...)
	namespaces := map[string]bool{}
	for _, some := range s.Kinds {
		maps.Copy(namespaces, some)
	}
	var failed error
	for i, resource := range resources {
		gvr := schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Name}
		if s.done[gvr.GroupResource()] {
			continue
		}
		in := namespaces
		if !resource.Namespaced {
			in = nil
		}
		err := within.Err()
		if err == nil && i < maxKinds {
			err = s.searchKind(within, gvr.GroupVersion().WithKind(resource.Kind), gvr, in)
		}
		if err != nil || i >= maxKinds {
			s.missed = append(s.missed, gvr.GroupResource().String())
			failed = cmp.Or(failed, err)
		}
	}
	return s.retryError(ctx, failed)
}

// retryError returns the error of a kind that could not be listed, so that the search is repeated. After several such
// errors, it returns nil unless the context has ended.
func (s *search) retryError(ctx context.Context, failed error) error {
	if failed != nil && (ctx.Err() != nil || s.run.item.searches.Add(1) < maxSearches) {
		return failed
	}
	return nil
}

// searchKind searches the objects of one kind. If the target does not allow listing the whole cluster, it searches the
// given namespaces.
func (s *search) searchKind(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespaces map[string]bool) error {
	s.done[resource.GroupResource()] = true
	err := s.listObjects(ctx, gvk, resource, "")
	if !apierrors.IsForbidden(err) {
		return err
	}
	s.missed = append(s.missed, resource.GroupResource().String())
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(namespaces)), func(name string) bool { return name == "" })
	for _, namespace := range names[:min(len(names), maxNamespaces)] {
		if err := s.listObjects(ctx, gvk, resource, namespace); err != nil && !apierrors.IsForbidden(err) {
			return err
		}
	}
	return nil
}

// listObjects lists the objects of one kind, in one namespace or in all namespaces. If there are too many objects, or
// they are too large, it reads only some of them.
func (s *search) listObjects(ctx context.Context, gvk schema.GroupVersionKind, resource schema.GroupVersionResource, namespace string) error {
	from := s.run.Cluster.metadata.Resource(resource).Namespace(namespace)
	options := metav1.ListOptions{LabelSelector: ownership.LabelItem + "=" + string(s.run.Owner.UID), Limit: pageSize}
	if slices.Contains(s.SharedKinds, gvk.GroupKind()) {
		options.LabelSelector = ownership.LabelItem // the label may name another owner
	}
	var next string
	var err error
	for n, left := 0, maxListed; left > 0 && err == nil; left -= max(n, maxListed/maxPages) {
		next, n, err = s.readPage(ctx, gvk, from, options)
		if over, ok := errors.AsType[*targets.LimitError](err); ok && over.Option == "Page" && options.Limit > 1 {
			options.Limit, err = options.Limit/2, nil
			continue
		}
		if err == nil && next == "" {
			return nil // there are no more pages
		}
		err = s.run.Cluster.addReason(ctx, gvk, err)
		if absence.ClassifyError(absence.Object{Kind: gvk.GroupKind()}, err).IsProved() {
			return nil // the kind is gone since the discovery
		}
		options.Continue = next
	}
	if _, isOver := errors.AsType[*targets.LimitError](err); err != nil && !isOver && !apierrors.IsMethodNotSupported(err) {
		return fmt.Errorf("list %s by label: %w", resource.GroupResource(), err)
	}
	s.missed = append(s.missed, resource.GroupResource().String())
	return nil
}

// readPage reads one page of a list. It returns the token of the next page, and the number of objects in this page. If
// the objects of the item do not fit into an inventory, it returns a [targets.LimitError].
func (s *search) readPage(ctx context.Context, gvk schema.GroupVersionKind, from metadata.ResourceInterface, options metav1.ListOptions) (next string, n int, err error) {
	held, release := targets.ReserveMemory(ctx)
	defer release()
	list, err := from.List(held, options)
	if err != nil {
		return "", 0, err
	}
	for i := range list.Items {
		entry, ours := NewEntry(s.run.Owner, gvk, &list.Items[i])
		if !ours || !s.run.Owner.HasWritten(&list.Items[i]) {
			continue
		}
		if s.Complete != nil {
			s.Complete(&entry, &list.Items[i])
		}
		if s.size += len(entry.Namespace) + len(entry.Name) + len(entry.UID); s.size > maxFound {
			return "", 0, &targets.LimitError{}
		}
		s.found[entry.UID] = entry
	}
	return list.Continue, len(list.Items), nil
}

// NewEntry returns the inventory entry for an object that belongs to an item. It returns false unless the object
// carries both the label and the annotations of the item, or the annotation of a further owner. The label alone is not
// sufficient, because Kubernetes copies labels to other objects, for example from a Service to its EndpointSlices. The
// annotations also show whether the object was adopted, and whether it has the policy apply.PolicyKeep. NewEntry
// returns false for an object that the item has released.
func NewEntry(item ownership.Owner, gvk schema.GroupVersionKind, obj metav1.Object) (apply.Entry, bool) {
	owners := ownership.ListOwners(obj)
	place := slices.IndexFunc(owners, func(owner ownership.Owner) bool {
		return owner.UID == item.UID && owner.Name == item.Name && owner.Namespace == item.Namespace
	})
	if place < 0 || ownership.IsReleased(obj) {
		return apply.Entry{}, false
	}
	version, kind := gvk.ToAPIVersionAndKind()
	entry := apply.Entry{
		APIVersion: version, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		Adopted: obj.GetAnnotations()[ownership.AnnotationAdopted] != "",
		Shared:  obj.GetLabels()[ownership.LabelItem] != string(item.UID),
	}
	if obj.GetAnnotations()[ownership.AnnotationPolicy] == string(apply.PolicyKeep) {
		entry.Policy = apply.PolicyKeep
	}
	return entry, true
}
