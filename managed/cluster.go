// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// Cluster is a client for a target cluster, with the watches of this cluster.
type Cluster struct {
	*targets.Client

	metadata metadata.Interface
	// listDeletable is targets.Client.ListDeletableResources.
	listDeletable func(context.Context) (found []metav1.APIResource, missing []string, err error)
	objects       dynamic.Interface
	ended         <-chan struct{} // closed when the client is removed from the pool
	watcher       *observe.Watcher
	statusShapes  sync.Map // maps each GroupVersionKind to its readiness.StatusShape
	classes       classCache
	identity      uidCache
	server        string // see apply.ClusterID.Server

	all    *clusters
	ctx    context.Context //nolint:containedctx // bounds the lifetime of the cluster
	cancel context.CancelFunc
	work   sync.WaitGroup // the goroutines that the method Go started

	// The lock of the clusters (all.mu) guards the following fields.
	lastUsed time.Time // the time at which the cluster was last requested
	users    map[types.UID]bool
}

// Watcher returns the Watcher of the target.
func (c *Cluster) Watcher() *observe.Watcher { return c.watcher }

// watch starts to watch a resource. The engine calls `watch` before it looks up objects of the resource in
// apply.Options.Watched. The method ignores errors, because WatchInventory checks later whether the resource is
// watched.
func (c *Cluster) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = c.watcher.Watch(ctx, resource, namespaces...)
}

// Go runs the function f in a goroutine that belongs to the cluster. The context of f ends when the cluster is closed.
// The cluster releases its client only after f has returned, and the manager waits for f when it stops. After the
// context has ended, f can still send requests with another context, for at most five seconds. If the cluster is closed
// already, Go returns false and does not run f. Go does not keep the cluster open; see KeepOpen.
func (c *Cluster) Go(f func(ctx context.Context)) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil || c.all.ctx == nil {
		return false
	}
	c.all.work.Add(1)
	c.work.Go(func() {
		defer c.all.work.Done()
		f(c.ctx)
	})
	return true
}

// KeepOpen keeps the cluster open for an item until StopKeepingOpen or ResourceManager.Forget is called, even if the item has
// no objects in the cluster. One call per item is enough. KeepOpen returns false if the cluster is closed already. In
// that case, get another Cluster from ResourceManager.OpenCluster.
func (c *Cluster) KeepOpen(item types.UID) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.users[item] = true
	return true
}

// StopKeepingOpen reverses KeepOpen.
func (c *Cluster) StopKeepingOpen(item types.UID) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.users, item)
}
