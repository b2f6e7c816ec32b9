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

// Relocated returns what becomes of an inventory if the item is deployed to a target now, for plans: the objects in the
// cluster where it was until now are then those of a former cluster. Of the target, the namespace kube-system is read.
// name is that of the Target.
// Errors: the target does not answer.
func Relocated(ctx context.Context, target client.Reader, name string, inv apply.Inventory) (apply.Inventory, error) {
	uid, err := LandscapeID(ctx, target)
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return inv, fmt.Errorf("identify the target: %w", err)
	}
	return relocate(inv, apply.Cluster{UID: uid, Target: name}).inventory, nil
}

// relocation is what it means for an inventory that the item is in a cluster now.
type relocation struct {
	inventory apply.Inventory
	// moved: the item was in another cluster before.
	moved bool
	// released are entries of a cluster that its Target does not lead to any more.
	released []apply.Entry
}

// relocate decides what becomes of an inventory if the item is in the cluster at now. A cluster whose UID is not known is
// never another one. The entries of another cluster are kept as those of a former one, unless the Target that led there
// leads to this one now: then nothing can be deleted there any more, and they are released. An item that comes back finds
// its entries again.
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

// removable returns the entries that may be deleted now: those of components that no other component requires which has
// entries itself. Components that require each other go together.
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
