// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// Relocated returns, for plans, the inventory of an item that is deployed to a target now. Objects in the previous
// cluster of the item then belong to a former cluster. Relocated reads the namespace kube-system of the target, and
// returns an error if the target does not answer. name is the name of the Target.
func Relocated(ctx context.Context, target client.Reader, name string, inv apply.Inventory) (apply.Inventory, error) {
	uid, err := LandscapeID(ctx, target)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return inv, fmt.Errorf("identify the target: %w", err)
	}
	return relocate(inv, apply.Cluster{UID: uid, Target: name}).inventory, nil
}

// relocation is the effect on an inventory if the item is in a cluster now.
type relocation struct {
	inventory apply.Inventory
	// moved means that the item was in another cluster before.
	moved bool
	// released are the entries of a cluster that its Target no longer leads to.
	released []apply.Entry
}

// relocate decides what happens to an inventory if the item is in the cluster at now. A cluster with an unknown UID
// never counts as another one. The entries of another cluster are kept as those of a former one, unless the Target
// that led there leads to this one now: nothing can be deleted there any more, so they are released. An item that
// comes back finds its entries again.
func relocate(inv apply.Inventory, at apply.Cluster) relocation {
	from := inv.Cluster
	switch {
	case at.UID == "":
		if from != nil && from.Target != at.Target {
			inv.Cluster = nil
		}
		return relocation{inventory: inv}
	case from != nil && from.UID == at.UID, from == nil && len(inv.Entries) > 0:
		inv.Cluster = &at
		return relocation{inventory: inv}
	}
	out := relocation{inventory: apply.Inventory{Cluster: &at}, moved: from != nil}
	for _, former := range inv.Former {
		if former.Cluster != nil && former.Cluster.UID == at.UID {
			out.inventory.Entries = append(out.inventory.Entries, former.Entries...)
			continue
		}
		out.inventory.Former = append(out.inventory.Former, former)
	}
	switch {
	case len(inv.Entries) == 0:
	case from.Target == at.Target:
		out.released = inv.Entries
	default:
		out.inventory.Former = append(out.inventory.Former, apply.Inventory{Cluster: from, Entries: inv.Entries})
	}
	return out
}

// removable returns the entries that may be deleted now. They belong to components that are not required by another
// component with entries. Components that require each other are deleted together.
func removable(entries []apply.Entry) []apply.Entry {
	required := map[string]bool{}
	for _, entry := range entries {
		for _, component := range entry.Requires {
			if component != entry.Component {
				required[component] = true
			}
		}
	}
	out := slices.DeleteFunc(slices.Clone(entries), func(entry apply.Entry) bool { return required[entry.Component] })
	if len(out) == 0 {
		return entries
	}
	return out
}
