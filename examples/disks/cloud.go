// SPDX-License-Identifier: Apache-2.0

package disks

import (
	"errors"
	"maps"
	"sync"
)

// MaxSize is the size of the largest disk in the cloud, in GB.
const MaxSize = 1000

// ErrTooLarge is returned for disks over MaxSize.
var ErrTooLarge = errors.New("no disk is that large")

// Cloud simulates a cloud that rents out disks. It is safe for concurrent use.
type Cloud struct {
	mu       sync.Mutex
	disks    map[string]Disk
	onChange []func(id string)
}

// Disk is a disk in the cloud.
type Disk struct {
	Region string
	Size   int
	// Ready is false until the cloud has created the disk.
	Ready bool
}

// NewCloud returns a cloud without disks.
func NewCloud() *Cloud { return &Cloud{disks: map[string]Disk{}} }

// OnChange registers f. The cloud calls f whenever a disk becomes ready or is lost.
func (c *Cloud) OnChange(f func(id string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onChange = append(c.onChange, f)
}

// EnsureDisk returns the disk with the given ID. If there is no such disk, EnsureDisk orders it.
func (c *Cloud) EnsureDisk(id, region string, size int) (Disk, error) {
	if size > MaxSize {
		return Disk{}, ErrTooLarge
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	disk, ordered := c.disks[id]
	if !ordered {
		disk = Disk{Region: region, Size: size}
		c.disks[id] = disk
	}
	return disk, nil
}

// DeleteDisk returns a disk to the cloud. It ignores a disk that does not exist.
func (c *Cloud) DeleteDisk(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.disks, id)
}

// Has reports whether the cloud has a disk with this ID.
func (c *Cloud) Has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.disks[id]
	return ok
}

// ListDisks returns all disks.
func (c *Cloud) ListDisks() map[string]Disk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.disks)
}

// SetReady makes all ordered disks ready.
func (c *Cloud) SetReady() {
	c.update(func() {
		for id, disk := range c.disks {
			disk.Ready = true
			c.disks[id] = disk
		}
	})
}

// RemoveAll removes all disks without a request from their users.
func (c *Cloud) RemoveAll() { c.update(func() { clear(c.disks) }) }

// update calls the given function. It then notifies the listeners about all disks that existed before that call.
func (c *Cloud) update(update func()) {
	before := c.ListDisks()
	c.mu.Lock()
	update()
	listeners := c.onChange
	c.mu.Unlock()
	for id := range before {
		for _, tell := range listeners {
			tell(id)
		}
	}
}
