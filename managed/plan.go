// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"cmp"
	"context"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// PlanInventory returns an owner that identifies the item, and the inventory with which a reconcile of the item would
// begin now. Pass both to apply.Engine.Plan, and use the inventory for nothing else. PlanInventory reaches the cluster
// of the deploy items through ls, and begins with inv, the inventory from the provider status of the item. If the item
// has no UID, it has not been created yet and owns no objects. If the item was deployed to another cluster before,
// Inventory.Former lists the objects in that cluster. Objects that a reconcile would release, or that it would leave
// because their cluster is unverified, are listed with the policy apply.PolicyKeep. PlanInventory reads the kube-system
// namespaces of both clusters, and returns an error if a cluster does not answer. If the target cannot be identified in
// this way, PlanInventory reads some of the objects of the inventory.
func PlanInventory(ctx context.Context, ls, target client.Reader, di *lsv1alpha1.DeployItem, inv apply.Inventory) (ownership.Owner, apply.Inventory, error) {
	owner := ownership.Owner{UID: cmp.Or(di.UID, plannedItemUID), Namespace: di.Namespace, Name: di.Name}
	var err error
	if owner.Landscape, err = getClusterUID(ctx, ls); err != nil || di.Spec.Target == nil {
		return owner, inv, err
	}
	uid, err := getTargetUID(ctx, target)
	if err != nil {
		return owner, inv, err
	}
	change, err := resolveRelocation(ctx, target, inv, apply.ClusterID{UID: uid, Target: di.Spec.Target.Name, Server: getServerHash(target)})
	if err != nil {
		return owner, inv, err
	}
	planned := change.inventory
	for i, former := range planned.Former {
		if hasReleaseAnnotation(di) || isUnverified(former) {
			planned.Former[i] = WithKeepPolicy(planned.Former[i : i+1])[0]
		}
	}
	if len(change.released) > 0 {
		planned.Former = append(slices.Clip(planned.Former), WithKeepPolicy([]apply.Inventory{{Cluster: inv.Cluster, Entries: change.released}})...)
	}
	return owner, planned, nil
}

// WithKeepPolicy returns a copy of inventories in which each object has the policy apply.PolicyKeep. A plan therefore
// reports that the objects are released.
func WithKeepPolicy(inventories []apply.Inventory) []apply.Inventory {
	out := slices.Clone(inventories)
	for i := range out {
		out[i].Entries = slices.Clone(out[i].Entries)
		for j := range out[i].Entries {
			out[i].Entries[j].Policy = apply.PolicyKeep
		}
	}
	return out
}

// plannedItemUID is the UID of an item that has not been created yet.
const plannedItemUID types.UID = "00000000-0000-0000-0000-000000000000"

// splitRemovable divides entries into those whose objects may be deleted first, and the others. An entry may belong to
// a component, which may require other components. An object may be deleted if no other component in the list requires
// the object's component. If this applies to no object, because the components require each other, all objects may be
// deleted.
func splitRemovable(entries []apply.Entry) (first, later []apply.Entry) {
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
