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

// Owned is an object as the item left it, for those who watch it.
type Owned struct {
	Resource schema.GroupVersionResource
	Name     types.NamespacedName
	UID      types.UID
	Key      ownership.Key
	// ResourceVersion of the answer to the last write, or what Options.Seen knew; empty if neither is known.
	ResourceVersion string
}

// Owned finds what an inventory says about the objects that can be watched, for a process that has just started.
// Kinds that the cluster does not know any more are left out. It asks the cluster nothing but its kinds.
func (e *Engine) Owned(inv Inventory) []Owned {
	r := e.newRun(ownership.Owner{}, inv, nil)
	for _, s := range r.book {
		if found, err := e.kindOf(s.Ref(), nil); err == nil {
			s.resource = found.resource
		}
	}
	return r.owned()
}

// owned lists what the book knows the key and the resource of.
func (r *run) owned() []Owned {
	var out []Owned
	for _, s := range r.all() {
		if s.Key != "" && !s.resource.Empty() && !s.Deleting {
			out = append(out, Owned{Resource: s.resource, Name: s.Ref().Key(), UID: s.UID, Key: s.Key, ResourceVersion: s.version})
		}
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
		if o.Policy == Ignore || o.Policy == Immutable || o.Strategy != Apply {
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
