// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"encoding/json"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/upkeep"
)

// ConditionDriftDetection is the condition that reports, with the reason, that changes by others are not noticed at
// once. It exists only while that is so.
const ConditionDriftDetection = upkeep.ConditionDriftDetection

// run is one call for one item.
type run struct {
	up *upkeep.Run

	options Options
	config  *Config // nil if it cannot be read, which is an error except for a deletion
	status  *Status
	sights  []upkeep.Sight // what the last custom check or the exports read
}

// newRun reads the item's configuration and status, and opens its target.
func (d *deployer) newRun(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) (*run, error) {
	config, err := Decode(di, d.options)
	if err != nil {
		return nil, err
	}
	r, err := d.openRun(ctx, di)
	if err != nil {
		return nil, err
	}
	r.config = config
	return r, r.up.Connect(ctx, target)
}

// openRun reads the provider status.
func (d *deployer) openRun(ctx context.Context, di *lsv1alpha1.DeployItem) (*run, error) {
	status, err := DecodeStatus(di)
	if err != nil {
		return nil, err
	}
	inventory, err := inventoryOf(status)
	if err != nil {
		return nil, err
	}
	r := &run{options: d.options, status: status}
	r.up, err = d.keeper.Begin(ctx, di, inventory, func(inventory apply.Inventory) error { return r.status.note(di, inventory) })
	return r, err
}

// engineOptions returns the options for the item. pruneGroups is nil for the default.
func (r *run) engineOptions(pruneGroups []apply.Group) apply.Options {
	return apply.Options{
		Strategy: apply.Strategy(r.strategy()), Recreate: r.options.Recreate, PruneGroups: pruneGroups, MaxInventory: maxInventory,
		SharedKinds: r.options.SharedKinds, Adoption: r.options.Adoption,
	}
}

// maxInventory leaves room for the rest of the provider status, which may have 1 MiB.
const maxInventory = 1<<20 - maxManaged - 16<<10

// note stores an inventory in the item's status, in memory.
func (s *Status) note(di *lsv1alpha1.DeployItem, inventory apply.Inventory) error {
	raw, err := json.Marshal(inventory)
	if err != nil {
		return fmt.Errorf("encode inventory: %w", err)
	}
	managed, err := managedOf(inventory)
	if err != nil {
		return err
	}
	s.Inventory, s.ManagedResources = raw, managed
	return SetStatus(di, s)
}

// inventoryOf returns the inventory in the status, or makes one from the status of Landscaper's own deployer. The
// objects of the latter are taken over, and those that are no longer wanted are deleted.
func inventoryOf(status *Status) (apply.Inventory, error) {
	inventory := apply.Inventory{}
	if !status.FromLandscaper() {
		if len(status.Inventory) == 0 {
			return inventory, nil
		}
		if err := json.Unmarshal(status.Inventory, &inventory); err != nil {
			return inventory, deployerlib.ConfigError(statusPath+"."+fieldInventory, "%s", err.Error())
		}
		return inventory, nil
	}
	for _, managed := range status.ManagedResources {
		entry := apply.Entry{
			APIVersion: managed.Resource.APIVersion, Kind: managed.Resource.Kind,
			Namespace: managed.Resource.Namespace, Name: managed.Resource.Name, UID: managed.Resource.UID,
			Policy: apply.Policy(managed.Policy), AnnotateBeforeDelete: managed.AnnotateBeforeDelete,
		}
		if entry.Policy == apply.Manage {
			entry.Policy = ""
		}
		if managed.PatchBeforeDelete != nil {
			patch, err := decodeObject(managed.PatchBeforeDelete)
			if err != nil {
				return inventory, deployerlib.ConfigError(statusPath+"."+fieldManaged, "patchBeforeDelete of %s: %s", managed.Resource.Name, err.Error())
			}
			entry.PatchBeforeDelete = patch
		}
		inventory.Entries = append(inventory.Entries, entry)
	}
	return inventory, nil
}

// managedOf lists the objects for people and for Landscaper's own deployer. That deployer deletes what it finds there,
// so the list does not contain objects of others that a policy left alone.
func managedOf(inventory apply.Inventory) (managedresource.ManagedResourceStatusList, error) {
	list := managedresource.ManagedResourceStatusList{}
	for _, e := range inventory.Entries {
		if e.UID == "" && (e.Policy == apply.Fallback || e.Policy == apply.Immutable) {
			continue
		}
		policy := managedresource.ManifestPolicy(e.Policy)
		if policy == "" {
			policy = managedresource.ManagePolicy
		}
		one := managedresource.ManagedResourceStatus{
			Policy:               policy,
			AnnotateBeforeDelete: e.AnnotateBeforeDelete,
			Resource:             corev1.ObjectReference{APIVersion: e.APIVersion, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name, UID: e.UID},
		}
		if len(e.PatchBeforeDelete) > 0 {
			patch, err := json.Marshal(e.PatchBeforeDelete)
			if err != nil {
				return nil, fmt.Errorf("encode patchBeforeDelete of %s: %w", e.Name, err)
			}
			one.PatchBeforeDelete = &runtime.RawExtension{Raw: patch}
		}
		list = append(list, one)
	}
	return list, nil
}

// strategy returns the strategy of the item.
func (r *run) strategy() string {
	if r.config == nil {
		return string(StrategyApply)
	}
	return string(r.config.Strategy)
}
