// SPDX-License-Identifier: Apache-2.0

package disks

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// Deployer rents a disk for each deploy item.
type Deployer struct {
	deployerlib.Base

	cloud *Cloud
	mu    sync.Mutex
	items map[string]types.NamespacedName // the keys are disk IDs
}

// New returns a deployer that rents disks in a cloud.
func New(cloud *Cloud) *Deployer {
	return &Deployer{cloud: cloud, items: map[string]types.NamespacedName{}}
}

// Reconcile rents the disk and waits until it is ready.
func (d *Deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	config, err := readConfig(di)
	if err != nil {
		return err
	}
	region, err := getRegion(target)
	if err != nil {
		return err
	}
	id, err := d.ensureDiskID(ctx, di)
	if err != nil {
		return err
	}
	disk, err := d.cloud.EnsureDisk(id, region, config.Size)
	if errors.Is(err, ErrTooLarge) {
		return deployerlib.NewConfigError("spec.config.size", "%s: at most %d", err.Error(), MaxSize)
	}
	if err != nil {
		return err // stored as lastError, and retried after a while
	}
	if !disk.Ready {
		return deployerlib.WaitFor("disk "+id, 30*time.Second)
	}
	return nil // the item has succeeded
}

// ensureDiskID returns the disk ID of the item. It stores a new ID before the disk is ordered. Therefore, Delete can
// return the disk even if the process was killed in between.
func (d *Deployer) ensureDiskID(ctx context.Context, di *lsv1alpha1.DeployItem) (string, error) {
	status, err := readStatus(di)
	if err != nil {
		return "", err
	}
	if status.DiskID == "" {
		status.DiskID = rand.Text()
		if err := deployerlib.SetProviderStatus(di, status, statusKind); err != nil {
			return "", err
		}
		if err := deployerlib.Checkpoint(ctx); err != nil {
			return "", err
		}
	}
	d.addItem(status.DiskID, di)
	return status.DiskID, nil
}

// Delete returns the disk to the cloud.
func (d *Deployer) Delete(_ context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	status, err := readStatus(di)
	if err != nil {
		return err
	}
	d.cloud.DeleteDisk(status.DiskID)
	d.removeItem(status.DiskID)
	return nil
}

func (d *Deployer) addItem(disk string, di *lsv1alpha1.DeployItem) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.items[disk] = client.ObjectKeyFromObject(di)
}

func (d *Deployer) removeItem(disk string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.items, disk)
}

func (d *Deployer) itemOf(disk string) (types.NamespacedName, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	item, ok := d.items[disk]
	return item, ok
}

var (
	_ deployerlib.Deployer    = (*Deployer)(nil)
	_ deployerlib.RuntimeUser = (*Deployer)(nil)
	_ deployerlib.Resumer     = (*Deployer)(nil)
)
