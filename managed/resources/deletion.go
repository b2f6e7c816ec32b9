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
		r.Managed.RecordUnsearchedEvent()
	}
	recovers := target != nil && r.Managed.HasLostInventory()
	if len(r.Managed.Inventory.Entries)+len(r.Managed.Inventory.Former) == 0 && !slices.ContainsFunc(config.DeletionGroups, isDeletingAll) && !recovers {
		r.Managed.Manager.Forget(r.Managed.Item.UID)
		return nil
	}
	if err := r.Managed.Connect(ctx, target); err != nil {
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
		if err := r.restoreInventory(ctx, lost); err != nil {
			return err
		}
	}
	groups, err := r.toGroups(ctx, "deletionGroups", config.DeletionGroups)
	if err != nil {
		return err
	}
	return r.Managed.Delete(ctx, r.getEngineOptions(nil), groups, config.DeleteTimeout)
}

// toGroups converts deletion groups from the field path of the configuration to those of the apply engine. It returns
// nil for the built-in order.
func (r *Run) toGroups(ctx context.Context, path string, definitions []managedresource.DeletionGroupDefinition) ([]apply.DeletionGroup, error) {
	var groups []apply.DeletionGroup
	for i, definition := range definitions {
		group := toGroup(definition)
		if name := getTargetName(definition); name != "" {
			other, err := r.Managed.OpenTarget(ctx, fmt.Sprintf("spec.config.%s[%d].customResourceGroup.targetName", path, i), name)
			if err != nil {
				return nil, err
			}
			group.Engine = other.NewEngine(r.Managed.CompleteOptions(other, r.getEngineOptions(nil)))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// listFormerGroups returns the deletion groups for clusters that the item no longer uses. It omits groups with a
// targetName and groups that also delete objects of other owners. It returns nil for the built-in order.
func (r *Run) listFormerGroups() []apply.DeletionGroup {
	if r.Config.DeletionGroups == nil {
		return nil
	}
	groups := []apply.DeletionGroup{} // not nil, even if all groups are omitted
	for _, definition := range r.Config.DeletionGroups {
		if !isDeletingAll(definition) && getTargetName(definition) == "" {
			groups = append(groups, toGroup(definition))
		}
	}
	return groups
}

// isDeletingAll reports whether a deletion group has the field `deleteAllResources`. Such a group also deletes objects
// that the item does not manage.
func isDeletingAll(group managedresource.DeletionGroupDefinition) bool {
	return group.CustomResourceGroup != nil && group.CustomResourceGroup.DeleteAllResources
}

func toGroup(in managedresource.DeletionGroupDefinition) apply.DeletionGroup {
	if predefined := in.PredefinedResourceGroup; predefined != nil {
		return apply.DeletionGroup{Type: apply.DeletionGroupType(predefined.Type), ForceDelete: predefined.ForceDelete}
	}
	custom := in.CustomResourceGroup
	group := apply.DeletionGroup{ForceDelete: custom.ForceDelete, DeleteAll: custom.DeleteAllResources}
	for _, resource := range custom.Resources {
		group.Resources = append(group.Resources, apply.ResourceType(resource))
	}
	return group
}

// getTargetName returns the name of the target in which a group deletes objects, or "" for the target of the item.
func getTargetName(in managedresource.DeletionGroupDefinition) string {
	if in.CustomResourceGroup == nil {
		return ""
	}
	return ptr.Deref(in.CustomResourceGroup.TargetName, "")
}
