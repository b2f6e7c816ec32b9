// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"
	"slices"

	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"

	"github.com/deployerkit/deployerkit/apply"
)

// groups converts deletion groups. It returns nil for the default.
func (r *run) groups(ctx context.Context, path string, definitions []managedresource.DeletionGroupDefinition) ([]apply.Group, error) {
	var groups []apply.Group
	for i := range definitions {
		group := groupOf(&definitions[i])
		if name := targetOf(&definitions[i]); name != "" {
			other, err := r.up.Target(ctx, fmt.Sprintf("spec.config.%s[%d].customResourceGroup.targetName", path, i), name)
			if err != nil {
				return nil, err
			}
			group.Cluster = r.up.Engine(other, r.engineOptions(nil))
		}
		groups = append(groups, group)
	}
	return groups, nil
}

// formerGroups returns the deletion groups for clusters that the item has left. They are the groups that only delete
// objects of the item, in its own target.
func (r *run) formerGroups(ctx context.Context) ([]apply.Group, error) {
	if len(r.up.Inventory.Former) == 0 || r.config.DeletionGroups == nil {
		return nil, nil
	}
	own := slices.DeleteFunc(slices.Clone(r.config.DeletionGroups), func(definition managedresource.DeletionGroupDefinition) bool {
		custom := definition.CustomResourceGroup
		return custom != nil && (custom.DeleteAllResources || custom.TargetName != nil)
	})
	groups, err := r.groups(ctx, "deletionGroups", own)
	if groups == nil {
		groups = []apply.Group{} // nil would mean the default
	}
	return groups, err
}

// deletesAll reports whether a deletion has something to do although the item manages nothing.
func (r *run) deletesAll() bool {
	if r.config == nil {
		return false
	}
	for i := range r.config.DeletionGroups {
		if custom := r.config.DeletionGroups[i].CustomResourceGroup; custom != nil && custom.DeleteAllResources {
			return true
		}
	}
	return false
}

func groupOf(in *managedresource.DeletionGroupDefinition) apply.Group {
	if predefined := in.PredefinedResourceGroup; predefined != nil {
		return apply.Group{Type: apply.GroupType(predefined.Type), ForceDelete: predefined.ForceDelete}
	}
	custom := in.CustomResourceGroup
	group := apply.Group{ForceDelete: custom.ForceDelete, DeleteAll: custom.DeleteAllResources}
	for _, resource := range custom.Resources {
		group.Resources = append(group.Resources, apply.ResourceType{
			APIVersion: resource.APIVersion, Kind: resource.Kind, Names: resource.Names, Namespaces: resource.Namespaces,
		})
	}
	return group
}

// targetOf returns the name of the target that a group works on, or "" for the item's own.
func targetOf(in *managedresource.DeletionGroupDefinition) string {
	if in.CustomResourceGroup == nil || in.CustomResourceGroup.TargetName == nil {
		return ""
	}
	return *in.CustomResourceGroup.TargetName
}
