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
	statuses sync.Map // by GroupVersionKind: the StatusShape of the kind
	identity identity

	all  *clusters
	ctx  context.Context //nolint:containedctx // the life of the cluster
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines of Go

	// These fields are guarded by all.mu.
	used  time.Time // when the cluster was last requested
	users map[types.UID]bool
}

// Watcher returns the metadata watches of the target.
func (c *Cluster) Watcher() *watch.Watcher { return c.watcher }

// Seen returns what the watches know about an object.
func (c *Cluster) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	return Seen(c.watcher).Seen(resource, name)
}

// watch starts to watch a resource before the engine asks what was seen. Observe checks later whether that worked.
func (c *Cluster) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = c.watcher.Watch(ctx, resource, namespaces...)
}

// Go runs f in a goroutine that belongs to the cluster. Its ctx ends when the cluster is closed, and the end of the
// cluster and of the manager waits for f. Go returns false if the cluster is closed; f does not run then. A running f
// does not keep the cluster open; see Keep.
func (c *Cluster) Go(f func(ctx context.Context)) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(func() { f(c.ctx) })
	return true
}

// Keep keeps the cluster open for an item although its watches expect nothing of the item's objects, until Release or
// Keeper.Forget. One call per item is enough. Keep returns false if the cluster is closed; get another one from
// Keeper.Cluster.
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

// Seen makes the watches of a cluster available to an engine.
func Seen(watcher *watch.Watcher) apply.Lookup { return lookup{watcher} }

type lookup struct{ watcher *watch.Watcher }

// Seen returns what the watches know about an object.
func (l lookup) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	seen, known := l.watcher.Get(resource, name)
	return apply.Seen{UID: seen.UID, Key: seen.Key, Deleting: seen.Deleting, Item: seen.Item, ResourceVersion: seen.ResourceVersion}, known
}

// Expected converts the objects that an engine left into what watches expect.
func Expected(owned []apply.Owned) []watch.Expected {
	out := make([]watch.Expected, 0, len(owned))
	for _, o := range owned {
		out = append(out, watch.Expected{
			Object: watch.Object{Resource: o.Resource, NamespacedName: o.Name}, UID: o.UID, Key: o.Key, ResourceVersion: o.ResourceVersion,
		})
	}
	return out
}
