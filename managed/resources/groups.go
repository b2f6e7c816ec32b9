// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"fmt"
	"slices"

	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupTypes are the predefined deletion groups.
var groupTypes = []managedresource.PredefinedResourceGroupType{
	managedresource.PredefinedResourceGroupNamespacedResources,
	managedresource.PredefinedResourceGroupClusterScopedResources,
	managedresource.PredefinedResourceGroupCRDs,
	managedresource.PredefinedResourceGroupEmpty,
}

// checkGroups validates the deletion groups for deletions or for updates.
func checkGroups(at string, groups []managedresource.DeletionGroupDefinition) error {
	for i := range groups {
		group, path := &groups[i], fmt.Sprintf("%s[%d]", at, i)
		if group.IsPredefined() == group.IsCustom() {
			return newConfigError(path, "must have either predefinedResourceGroup or customResourceGroup")
		}
		if group.IsPredefined() {
			if kind := group.PredefinedResourceGroup.Type; !slices.Contains(groupTypes, kind) {
				return newConfigError(path+".predefinedResourceGroup.type", "is %q, want one of %q", kind, groupTypes)
			}
			continue
		}
		if err := checkCustomGroup(path+".customResourceGroup", group.CustomResourceGroup); err != nil {
			return err
		}
	}
	return nil
}

func checkCustomGroup(at string, group *managedresource.CustomResourceGroup) error {
	if target := group.TargetName; target != nil {
		if *target == "" {
			return newConfigError(at+".targetName", "must not be empty")
		}
		if !group.DeleteAllResources {
			return newConfigError(at+".targetName", "needs deleteAllResources: without it, the group deletes only objects of the item, and these are in its own target")
		}
	}
	if len(group.Resources) == 0 {
		return newConfigError(at+".resources", "required: at least one resource")
	}
	for i, kind := range group.Resources {
		path := fmt.Sprintf("%s.resources[%d]", at, i)
		if err := checkKind(path, kind.APIVersion, kind.Kind); err != nil {
			return err
		}
		if slices.Contains(kind.Names, "") {
			return newConfigError(path+".names", "must not contain an empty name")
		}
		if slices.Contains(kind.Namespaces, "") {
			return newConfigError(path+".namespaces", "must not contain an empty name")
		}
	}
	return nil
}

// checkKind validates the two fields that identify a kind.
func checkKind(at, apiVersion, kind string) error {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		return newConfigError(at+".apiVersion", "is %q, want \"version\" or \"group/version\"", apiVersion)
	}
	if kind == "" {
		return newConfigError(at+".kind", "required")
	}
	return nil
}
