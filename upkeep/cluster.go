// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/targets"
)

// Cluster is a target with its watches. It is a Lookup for the engine.
type Cluster struct {
	*targets.Client

	metadata metadata.Interface
	ended    <-chan struct{} // closed when the client leaves the pool
	watcher  *watch.Watcher
	statuses sync.Map // by GroupVersionKind: whether somebody writes a status
	identity identity

	all  *clusters
	ctx  context.Context //nolint:containedctx // the life of the cluster
	end  context.CancelFunc
	work sync.WaitGroup // what Go runs

	// Guarded by all.mu.
	used  time.Time // when somebody asked for the cluster last
	users map[types.UID]bool
}

// Watcher returns the metadata watches of the target.
func (c *Cluster) Watcher() *watch.Watcher { return c.watcher }

// Seen is what the watches know about an object.
func (c *Cluster) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	return Seen(c.watcher).Seen(resource, name)
}

// watch begins to watch a resource before the engine asks what was seen. Whether
// that worked is looked at afterwards, see Observe.
func (c *Cluster) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = c.watcher.Watch(ctx, resource, namespaces...)
}

// Go runs f in a goroutine that belongs to the cluster: ctx ends when the
// cluster is closed, and the end of the cluster and of the manager waits for f.
// false: the cluster is closed, f does not run. A running f does not keep the
// cluster open, see Keep.
func (c *Cluster) Go(f func(ctx context.Context)) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(func() { f(c.ctx) })
	return true
}

// Keep keeps the cluster open for an item although its watches expect nothing
// of the item's, until Release or Keeper.Forget. Once per item is enough.
// false: the cluster is closed; get another one from Keeper.Cluster.
func (c *Cluster) Keep(item types.UID) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.users[item] = true
	return true
}

// Release takes Keep back.
func (c *Cluster) Release(item types.UID) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	delete(c.users, item)
}

// Seen makes the watches of a cluster what an engine asks.
func Seen(watcher *watch.Watcher) apply.Lookup { return lookup{watcher} }

type lookup struct{ watcher *watch.Watcher }

// Seen is what the watches know about an object.
func (l lookup) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	seen, known := l.watcher.Get(resource, name)
	return apply.Seen{UID: seen.UID, Key: seen.Key, Deleting: seen.Deleting, Item: seen.Item, ResourceVersion: seen.ResourceVersion}, known
}

// Expected makes what an engine left behind what watches are to expect.
func Expected(owned []apply.Owned) []watch.Expected {
	out := make([]watch.Expected, 0, len(owned))
	for _, o := range owned {
		out = append(out, watch.Expected{
			Object: watch.Object{Resource: o.Resource, NamespacedName: o.Name}, UID: o.UID, Key: o.Key, ResourceVersion: o.ResourceVersion,
		})
	}
	return out
}
