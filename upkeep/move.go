// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Planned returns an owner that identifies the item, and the inventory with which a reconcile of the item would begin
// now. Pass both to apply.Engine.Plan. The parameter `ls` is a client for the cluster of the deploy items, and `inv`
// is the inventory from the provider status of the item. If the item has no UID, it has not been created yet and owns
// no objects. If the item was deployed to another cluster before, Inventory.Former lists the objects in that cluster.
// Planned reads the kube-system namespaces of both clusters, and returns an error if a cluster does not answer.
func Planned(ctx context.Context, ls, target client.Reader, di *lsv1alpha1.DeployItem, inv apply.Inventory) (ownership.Owner, apply.Inventory, error) {
	owner := ownership.Owner{UID: cmp.Or(di.UID, unborn), Namespace: di.Namespace, Name: di.Name}
	var err error
	if owner.Landscape, err = clusterID(ctx, ls); err != nil || di.Spec.Target == nil {
		return owner, inv, err
	}
	uid, err := targetID(ctx, target)
	if err != nil {
		return owner, inv, err
	}
	return owner, relocate(inv, apply.Cluster{UID: uid, Target: di.Spec.Target.Name}).inventory, nil
}

// unborn is the UID of an item that has not been created yet.
const unborn types.UID = "00000000-0000-0000-0000-000000000000"

// relocation is the inventory of an item after its current cluster has been compared with the previous one.
type relocation struct {
	inventory apply.Inventory
	// moved means that the item was deployed to another cluster before.
	moved bool
	// released contains the entries of the previous cluster if that cluster can no longer be reached, because its
	// Target now refers to the current cluster.
	released []apply.Entry
}

// relocate adapts an inventory to the current cluster of the item, which is the parameter `at`. If the item was
// deployed to another cluster before, relocate moves the entries of that cluster to Inventory.Former. If that cluster
// can no longer be reached, because its Target now refers to the current cluster, relocate moves the entries to the
// field `released` of the result instead. If the item returns to a former cluster, relocate moves the entries of that
// cluster back from Inventory.Former. A cluster with an unknown UID never counts as another cluster.
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
	out := relocation{inventory: apply.Inventory{Cluster: &at, Empty: inv.Empty}, moved: from != nil}
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

// removable divides entries into those whose objects may be deleted first, and the others. An entry may belong to a
// component, which may require other components. An object may be deleted if no other component in the list requires the
// object's component. If this applies to no object, because the components require each other, all objects may be deleted.
func removable(entries []apply.Entry) (first, later []apply.Entry) {
	required := map[string]bool{}
	for _, entry := range entries {
		for _, component := range entry.Requires {
			if component != entry.Component {
				required[component] = true
			}
		}
	}
	for _, entry := range entries {
		if required[entry.Component] {
			later = append(later, entry)
		} else {
			first = append(first, entry)
		}
	}
	if len(first) == 0 {
		return entries, nil
	}
	return first, later
}
