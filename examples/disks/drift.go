// SPDX-License-Identifier: Apache-2.0

package disks

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// UseRuntime makes the cloud trigger a reconcile of an item whose disk changes.
func (d *Deployer) UseRuntime(rt deployerlib.Runtime) error {
	d.cloud.OnChange(func(disk string) {
		if item, ok := d.itemOf(disk); ok {
			rt.Trigger(item)
		}
	})
	return nil
}

// Resume is called for each finished item after a restart. It records the item's disk in memory, so
// that changes of the disk trigger the item.
func (d *Deployer) Resume(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	status, err := readStatus(di)
	if err == nil && status.DiskID != "" {
		d.addItem(status.DiskID, di)
	}
	return err
}

// ExtensionHooks registers a hook that handles lost disks.
func (d *Deployer) ExtensionHooks() extension.ReconcileExtensionHooks {
	return extension.ReconcileExtensionHooks{}.
		RegisterHook(extension.WithName("lost-disk", d.handleLostDisk), extension.ShouldReconcileHook)
}

// handleLostDisk forces a run of the item if its disk was lost, even if the item itself has not changed.
func (d *Deployer) handleLostDisk(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	status, err := readStatus(di)
	if err != nil || status.DiskID == "" || d.cloud.Has(status.DiskID) {
		return nil, err // no opinion
	}
	return &extension.HookResult{AbortReconcile: false}, nil // force a run
}
