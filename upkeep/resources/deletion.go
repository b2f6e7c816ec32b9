// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"k8s.io/utils/ptr"

	"github.com/deployerkit/deployerkit/apply"
)

// Delete deletes the objects of the item in the order of Config.DeletionGroups, or in the built-in order if Config is
// nil. It opens the target only if there may be something to delete. If the inventory was lost, Delete restores it from
// the labels of the objects, and calls the function `desired` to get the policies of the item's current objects. The
// function may be nil. When all objects are gone, Delete removes the item from memory and returns nil.
func (r *Run) Delete(ctx context.Context, target *lsv1alpha1.ResolvedTarget, desired func() ([]apply.Desired, error)) error {
	config := cmp.Or(r.Config, &Config{})
	if target == nil {
		r.Up.ReportUnsearched()
	}
	recovers := target != nil && r.Up.LostInventory()
	if len(r.Up.Inventory.Entries)+len(r.Up.Inventory.Former) == 0 && !slices.ContainsFunc(config.DeletionGroups, deletesAll) && !recovers {
		r.Up.Keeper.Forget(r.Up.Item.UID)
		return nil
	}
	if err := r.Up.Connect(ctx, target); err != nil {
		return err
	}
	if recovers {
		var lost []apply.Desired
		if desired != nil {
			var err error
			if lost, err = desired(); err != nil {
				return err
			}
		}
		if err := r.recover(ctx, lost); err != nil {
			return err
		}
	}
	groups, err := r.groups(ctx, "deletionGroups", config.DeletionGroups)
	if err != nil {
		return err
	}
	return r.Up.Delete(ctx, r.engine(nil), groups, config.DeleteTimeout)
}

// groups converts deletion groups from the configuration to those of the apply engine. It returns nil for the built-in
// order. The parameter `path` is the field of the configuration that contains the groups.
func (r *Run) groups(ctx context.Context, path string, definitions []managedresource.DeletionGroupDefinition) ([]apply.Group, error) {
	var groups []apply.Group
	for i, definition := range definitions {
		group := groupOf(definition)
		if name := targetOf(definition); name != "" {
			other, err := r.Up.Target(ctx, fmt.Sprintf("spec.config.%s[%d].customResourceGroup.targetName", path, i), name)
			if err != nil {
				return nil, err
			}
			group.Cluster = other.Engine(r.Up.Options(other, r.engine(nil)))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// formerGroups returns the deletion groups for clusters that the item no longer uses. It omits groups with a targetName
// and groups that also delete objects of other owners. It returns nil for the built-in order.
func (r *Run) formerGroups() []apply.Group {
	if r.Config.DeletionGroups == nil {
		return nil
	}
	groups := []apply.Group{} // not nil, even if all groups are omitted
	for _, definition := range r.Config.DeletionGroups {
		if !deletesAll(definition) && targetOf(definition) == "" {
			groups = append(groups, groupOf(definition))
		}
	}
	return groups
}

// deletesAll reports whether a deletion group has the field `deleteAllResources`. Such a group also deletes objects that
// the item does not manage.
func deletesAll(group managedresource.DeletionGroupDefinition) bool {
	return group.CustomResourceGroup != nil && group.CustomResourceGroup.DeleteAllResources
}

func groupOf(in managedresource.DeletionGroupDefinition) apply.Group {
	if predefined := in.PredefinedResourceGroup; predefined != nil {
		return apply.Group{Type: apply.GroupType(predefined.Type), ForceDelete: predefined.ForceDelete}
	}
	custom := in.CustomResourceGroup
	group := apply.Group{ForceDelete: custom.ForceDelete, DeleteAll: custom.DeleteAllResources}
	for _, resource := range custom.Resources {
		group.Resources = append(group.Resources, apply.ResourceType(resource))
	}
	return group
}

// targetOf returns the name of the target in which a group deletes objects, or "" for the target of the item.
func targetOf(in managedresource.DeletionGroupDefinition) string {
	if in.CustomResourceGroup == nil {
		return ""
	}
	return ptr.Deref(in.CustomResourceGroup.TargetName, "")
}
