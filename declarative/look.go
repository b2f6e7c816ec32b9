// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/upkeep"
)

// observerOf finds or makes the observer of a target, which ends together with the target.
func (d *deployer) observerOf(c *upkeep.Cluster) (*observer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.observers[c]; o != nil {
		return o, nil
	}
	client, err := dynamic.NewForConfigAndClient(c.Config(), c.HTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make client for children: %w", err)
	}
	o := newObserver(client, d.keeper.Runtime().Clock, &d.informers)
	o.spawn, o.changed = c.Go, d.changed
	forget := func(ctx context.Context) {
		<-ctx.Done()
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.observers, c)
	}
	if !c.Go(forget) {
		return nil, errClosed
	}
	d.observers[c] = o
	return o, nil
}

// look takes the snapshot of the item's children. They are shared and must not be changed.
//
// The snapshot contains the objects that carry the item's mark, as the informers know them, and the objects that the
// inventory names, which are read if no informer is certain about them. It always contains what the item itself wrote
// last.
func (r *run) look(ctx context.Context) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	r.unobserved = map[schema.GroupKind]bool{}
	for _, kind := range r.deployer.options.Children {
		gvk := schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind)
		mapping, err := r.up.Cluster.Mapping(gvk)
		if err != nil {
			return nil, fmt.Errorf("look up %s: %w", gvk.GroupKind(), err)
		}
		if mapping == nil {
			continue // the target does not have the kind
		}
		entries := entriesOf(r.up.Inventory, gvk.GroupKind())
		v, err := r.observer.view(ctx, mapping.Resource, r.placesOf(entries))
		if err != nil {
			return nil, err
		}
		found, err := r.lookAt(ctx, gvk, v, entries)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// entriesOf returns the entries of an inventory that are of a kind.
func entriesOf(inventory apply.Inventory, kind schema.GroupKind) []apply.Entry {
	var out []apply.Entry
	for _, entry := range inventory.Entries {
		if entry.Ref().GVK().GroupKind() == kind {
			out = append(out, entry)
		}
	}
	return out
}

// placesOf returns the namespaces where the item has or may have children.
func (r *run) placesOf(entries []apply.Entry) []string {
	places := map[string]bool{}
	for _, entry := range entries {
		if entry.Namespace != "" {
			places[entry.Namespace] = true
		}
	}
	allowed := r.deployer.options.Namespaces
	if allowed == nil {
		allowed = []string{r.item.Namespace}
	}
	for _, namespace := range allowed {
		if namespace != AnyNamespace {
			places[namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(places))
}

// lookAt finds the children of a kind.
func (r *run) lookAt(ctx context.Context, gvk schema.GroupVersionKind, v view, entries []apply.Entry) ([]*unstructured.Unstructured, error) {
	found := map[string]*unstructured.Unstructured{}
	for _, obj := range v.of(r.up.Owner) {
		found[obj.GetNamespace()+"/"+obj.GetName()] = obj
	}
	r.unobserved[gvk.GroupKind()] = v.reason != ""
	for _, entry := range entries {
		key := entry.Namespace + "/" + entry.Name
		obj, sure := r.seen(ctx, v, entry)
		if !sure {
			var err error
			if obj, err = r.read(ctx, gvk, entry); err != nil {
				return nil, err
			}
		}
		if delete(found, key); obj != nil {
			found[key] = obj
		}
	}
	out := make([]*unstructured.Unstructured, 0, len(found))
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[key])
	}
	return out, nil
}

// lag is how long an informer may take to see what the item wrote.
const (
	lag      = time.Second
	lagCheck = 5 * time.Millisecond
)

// seen returns what the informers know about an entry of the inventory. sure is false if they cannot be certain. They
// are never certain about a missing object, because it may exist and have lost its mark.
func (r *run) seen(ctx context.Context, v view, entry apply.Entry) (obj *unstructured.Unstructured, sure bool) {
	informer := v.in(entry.Namespace)
	if informer == nil {
		return nil, false
	}
	written := r.memory.written[entry.Ref()]
	upToDate := func(context.Context) (bool, error) {
		if obj = informer.get(entry.Namespace, entry.Name); obj == nil {
			return written == "" || informer.reached(written), nil
		}
		sure = written == "" || !version.Older(obj.GetResourceVersion(), written)
		return sure, nil
	}
	_ = wait.PollUntilContextTimeout(ctx, lagCheck, lag, true, upToDate) // without a certain result, the caller reads the object
	if obj == nil || !r.isOurs(obj) {
		return nil, false
	}
	return obj, sure
}

// read reads an entry of the inventory from the target. It returns nil if the object does not exist or is not the
// item's.
func (r *run) read(ctx context.Context, gvk schema.GroupVersionKind, entry apply.Entry) (*unstructured.Unstructured, error) {
	ref := entry.Ref()
	ref.APIVersion = gvk.GroupVersion().String()
	obj, err := r.up.Read(ctx, r.up.Cluster, ref)
	if err != nil || obj == nil || obj.GetUID() != entry.UID && !r.isOurs(obj) {
		return nil, err
	}
	obj.SetManagedFields(nil)
	return obj, nil
}

// restore adds the children that carry the item's mark to an inventory that was lost.
func (r *run) restore(seen []*unstructured.Unstructured) error {
	if !r.up.LostInventory() {
		return nil
	}
	var entries []apply.Entry
	for _, obj := range seen {
		if entry, ours := r.up.EntryOf(obj.GroupVersionKind(), obj); ours {
			entries = append(entries, entry)
		}
	}
	return r.up.Restore(entries)
}

// recover looks for the children of an item that is being deleted and has no inventory.
func (r *run) recover(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	if err := r.connect(ctx, target); err != nil {
		return err
	}
	seen, err := r.look(ctx)
	if err != nil {
		return err
	}
	return r.restore(seen)
}

// isOurs reports whether an object carries the item's mark, or that of an earlier item of the same name.
func (r *run) isOurs(obj *unstructured.Unstructured) bool {
	owner, marked := ownership.OwnerOf(obj)
	return marked && (owner.UID == r.item.UID || owner.SameItem(r.up.Owner))
}

// remember records what the item wrote, so that no later call sees anything older.
func (m *memory) remember(inventory apply.Inventory, report apply.Report) {
	refs := make(map[types.UID]apply.Ref, len(inventory.Entries))
	for _, entry := range inventory.Entries {
		refs[entry.UID] = entry.Ref()
	}
	written := make(map[apply.Ref]string, len(refs))
	for _, owned := range report.Owned {
		if ref, known := refs[owned.UID]; known && owned.ResourceVersion != "" {
			written[ref] = owned.ResourceVersion
		}
	}
	m.written = written
}
