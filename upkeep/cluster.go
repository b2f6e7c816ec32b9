// SPDX-License-Identifier: Apache-2.0

package upkeep

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
	// deletable is targets.Client.ListDeletableResources.
	deletable func(context.Context) (found []metav1.APIResource, missing []string, err error)
	objects   dynamic.Interface
	ended     <-chan struct{} // closed when the client is removed from the pool
	watcher   *observe.Watcher
	statuses  sync.Map // maps each GroupVersionKind to its readiness.StatusShape
	classes   classes
	identity  identity
	server    string // see apply.Cluster.Server

	all  *clusters
	ctx  context.Context //nolint:containedctx // bounds the lifetime of the cluster
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines that the method Go started

	// The lock of the clusters (all.mu) guards the following fields.
	used  time.Time // the time at which the cluster was last requested
	users map[types.UID]bool
}

// Watcher returns the Watcher of the target.
func (c *Cluster) Watcher() *observe.Watcher { return c.watcher }

// watch starts to watch a resource. The engine calls `watch` before it calls Seen for objects of the resource. The
// method ignores errors, because Observe checks later whether the resource is watched.
func (c *Cluster) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = c.watcher.Watch(ctx, resource, namespaces...)
}

// Go runs the function f in a goroutine that belongs to the cluster. The context of f ends when the cluster is closed.
// The cluster releases its client only after f has returned, and the manager waits for f when it stops. If the cluster
// is closed already, Go returns false and does not run f. Go does not keep the cluster open; see Keep.
func (c *Cluster) Go(f func(ctx context.Context)) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(func() { f(c.ctx) })
	return true
}

// Keep keeps the cluster open for an item until Release or Keeper.Forget is called, even if the item has no objects in
// the cluster. One call per item is enough. Keep returns false if the cluster is closed already. In that case, get
// another Cluster from Keeper.Cluster.
func (c *Cluster) Keep(item types.UID) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.users[item] = true
	return true
}

// Release reverses Keep.
func (c *Cluster) Release(item types.UID) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.users, item)
}
