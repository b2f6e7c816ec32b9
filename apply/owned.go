// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Owned is an object as the item left it, for a watch.
type Owned struct {
	Resource schema.GroupVersionResource
	Name     types.NamespacedName
	UID      types.UID
	// Key is empty for the strategy OnDelete, for which only the deletion or replacement of the object counts.
	Key ownership.Key
	// ResourceVersion is that of the answer to the last write, or of Options.Seen. It is empty if neither is known.
	ResourceVersion string
}

// Owned returns what an inventory contains about the objects that can be watched, for a process that has just
// started. It leaves out kinds that the cluster no longer knows. It only asks the cluster for its kinds.
func (e *Engine) Owned(inv Inventory) []Owned {
	r := e.newRun(ownership.Owner{}, inv, nil)
	r.locate()
	return r.owned()
}

// locate finds the resources of all objects that can be watched.
func (r *run) locate() {
	found := map[Ref]schema.GroupVersionResource{}
	for _, ref := range r.unlocated() {
		if one, err := r.kindOf(ref, nil); err == nil {
			found[ref.id()] = one.resource
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, resource := range found {
		if s := r.book[id]; s.resource.Empty() {
			s.resource = resource
		}
	}
}

func (r *run) unlocated() []Ref {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Ref
	for _, s := range r.book {
		if s.resource.Empty() && s.isOwned() {
			out = append(out, s.Ref())
		}
	}
	return out
}

// isOwned reports whether a watch can see if the object is as it was left.
func (s *slot) isOwned() bool {
	return !s.gone && !s.Deleting && (s.Key != "" || s.OnDelete && s.UID != "" && s.Hash != "")
}

// owned lists the objects that can be watched and whose resource is known.
func (r *run) owned() []Owned {
	var out []Owned
	for _, s := range r.all() {
		if !s.isOwned() || s.resource.Empty() {
			continue
		}
		one := Owned{Resource: s.resource, Name: s.Ref().Key(), UID: s.UID, Key: s.Key, ResourceVersion: s.version}
		if s.OnDelete {
			one.Key = ""
		}
		out = append(out, one)
	}
	return out
}

// watch announces the resources of a stage.
func (r *run) watch(ctx context.Context, objects []*object) {
	if r.options.Watch == nil {
		return
	}
	places := map[schema.GroupVersionResource]map[string]bool{}
	for _, o := range objects {
		if !o.isWatched() {
			continue
		}
		if places[o.kind.resource] == nil {
			places[o.kind.resource] = map[string]bool{}
		}
		if o.ref.Namespace != "" {
			places[o.kind.resource][o.ref.Namespace] = true
		}
	}
	resources := slices.SortedFunc(maps.Keys(places), func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
	for _, resource := range resources {
		r.options.Watch(ctx, resource, slices.Sorted(maps.Keys(places[resource])))
	}
}
