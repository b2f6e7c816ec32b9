// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/targets"
)

// clusters contains the open target clusters of the deployer. The manager starts and stops it.
type clusters struct {
	manager      *ResourceManager
	pool         *targets.Pool
	limit        *observe.Limit
	fights       *observe.FightDetector
	driftCounter *prometheus.CounterVec // counts changes by other writers, as reported by the watches
	delayCounter prometheus.Counter     // counts corrections that are delayed because of a fight
	// subscriptions bounds the watches that are open only for Subscriptions
	subscriptions *observe.Limit
	landscaper    *LandscaperCluster // nil until it is needed; guarded by mu

	running sync.WaitGroup
	work    sync.WaitGroup // the goroutines that Cluster.Go has started
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // bounds the lifetime of the watches; nil before Start
	open    map[*targets.Client]*Cluster
}

func newClusters(k *ResourceManager, pool *targets.Pool) *clusters {
	fights := k.options.Fights
	fights.Clock = k.rt.Clock
	s := &clusters{
		manager: k, pool: pool,
		limit: observe.NewLimit(observe.DefaultMaxWatches), subscriptions: observe.NewLimit(observe.DefaultMaxWatches), fights: observe.NewFightDetector(fights),
		driftCounter: newDriftCounter(), delayCounter: newDelayCounter(), open: map[*targets.Client]*Cluster{},
	}
	return s
}

// Start maintains the clients and watches until ctx ends.
func (s *clusters) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	for _, metrics := range []prometheus.Collector{s.pool, s.driftCounter, s.delayCounter} {
		if err := s.manager.rt.Registerer.Register(metrics); err != nil {
			return fmt.Errorf("register metrics of targets: %w", err)
		}
		defer s.manager.rt.Registerer.Unregister(metrics)
	}
	s.running.Go(func() { s.runGarbageCollection(ctx) })
	<-ctx.Done()
	s.stop(s.pool.Close)
	return nil
}

// lastRequests is how long the goroutines that Cluster.Go has started may still send requests after the manager has
// begun to stop.
const lastRequests = 5 * time.Second

// stop waits until all goroutines have ended. It calls closePool, which closes the clients of the targets, as soon as
// no goroutine of Cluster.Go is left, or after lastRequests.
func (s *clusters) stop(closePool func()) {
	timer := s.manager.rt.Clock.NewTimer(lastRequests)
	defer timer.Stop()
	s.mu.Lock()
	s.ctx = nil // from now on, nothing can be started
	s.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		s.work.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-timer.C():
	}
	closePool()
	s.running.Wait()
	<-idle
}

// NeedLeaderElection returns false, so that the clusters start before the deployer.
func (s *clusters) NeedLeaderElection() bool { return false }

// get returns the cluster for a target. It opens the cluster if necessary.
func (s *clusters) get(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	c, err := s.pool.Get(ctx, target)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[c]; open != nil {
		open.lastUsed = s.manager.rt.Clock.Now()
		return open, nil
	}
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, fmt.Errorf("the %s is not running", s.manager.name())
	}
	return s.add(c)
}

// add creates and starts a Cluster for a client. The Watcher of the Cluster runs as long as the client exists.
func (s *clusters) add(c *targets.Client) (*Cluster, error) {
	release, ok := c.Pin()
	if !ok {
		return nil, errors.New("the target client was closed during the call")
	}
	metadataClient, metadataErr := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
	objects, objectsErr := dynamic.NewForConfigAndClient(c.Config(), c.HTTPClient())
	if err := errors.Join(metadataErr, objectsErr); err != nil {
		release()
		return nil, fmt.Errorf("make clients for watches: %w", err)
	}
	open := &Cluster{Client: c, metadata: metadataClient, listDeletable: c.ListDeletableResources, objects: objects, ended: c.Done(), server: getServerHash(c)}
	s.start(open, release)
	return open, nil
}

// start starts the Watcher of a cluster. When the cluster is no longer needed, it stops the Watcher and calls the
// function `release`.
func (s *clusters) start(open *Cluster, release func()) {
	clk := s.manager.rt.Clock
	open.watcher = observe.New(open.metadata, observe.Options{Limit: s.limit, SubscriptionLimit: s.subscriptions, Clock: clk, DynamicClient: open.objects})
	open.all, open.lastUsed, open.users, open.identity = s, clk.Now(), map[types.UID]bool{}, make(uidCache, 1)
	open.identity <- nil
	open.ctx, open.cancel = context.WithCancel(s.ctx)
	open.watcher.OnDrift(s.handleDrift)
	open.watcher.OnWatchLost(s.handleLostWatch)
	open.watcher.OnUnknownObject(s.handleUnknownObject)
	if changed := s.manager.options.ObjectChanged; changed != nil {
		open.watcher.OnObjectChange(changed)
	}
	open.watcher.Start(open.ctx)
	s.open[open.Client] = open
	s.running.Go(func() {
		defer release()
		s.waitUntilUnused(open)
		open.watcher.Wait()
		open.work.Wait()
	})
}

// idleCheckInterval is the interval at which the deployer checks whether a cluster is unused.
const idleCheckInterval = 5 * time.Minute

// waitUntilUnused waits until the client of the cluster is removed from the pool, no item needs the cluster, or the
// manager stops. It then closes the cluster.
func (s *clusters) waitUntilUnused(open *Cluster) {
	ticker := s.manager.rt.Clock.NewTicker(idleCheckInterval)
	defer ticker.Stop()
	for {
		onlyIdle := false
		select {
		case <-open.ctx.Done():
		case <-open.ended:
		case <-ticker.C():
			onlyIdle = true
		}
		if s.close(open, onlyIdle) {
			return
		}
	}
}

// close closes a cluster, and reports whether it has closed the cluster. If its target is requested again, a new
// Cluster is created. If `onlyIdle` is true, a cluster that an item needs stays open. A cluster that was requested
// recently stays open as well, because an item may be about to use it.
func (s *clusters) close(open *Cluster, onlyIdle bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if onlyIdle && (open.watcher.GetStats().Items > 0 || len(open.users) > 0 || s.manager.rt.Clock.Since(open.lastUsed) < idleCheckInterval) {
		return false
	}
	if s.open[open.Client] == open {
		delete(s.open, open.Client)
	}
	open.cancel()
	return true
}

// garbageCollectionInterval is the interval at which the deployer searches its memory for items that no longer exist,
// and removes them from memory. An item may disappear without a call of the deployer, for example because of the
// annotation delete-without-uninstall.
const garbageCollectionInterval = 10 * time.Minute

// runGarbageCollection searches for items that no longer exist, and removes them from memory. It does so at regular
// intervals until ctx ends.
func (s *clusters) runGarbageCollection(ctx context.Context) {
	ticker := s.manager.rt.Clock.NewTicker(garbageCollectionInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			s.forgetDeletedItems(ctx)
		}
	}
}

// forgetDeletedItems removes the items from memory that the cache of the manager no longer contains.
func (s *clusters) forgetDeletedItems(ctx context.Context) {
	for uid, key := range s.manager.items.listKeys() {
		di := &lsv1alpha1.DeployItem{}
		err := s.manager.rt.Landscaper.GetClient().Get(ctx, key, di)
		if notfound.IsProof(err) || err == nil && di.UID != uid {
			s.manager.Forget(uid)
		}
	}
}

// removeObjects removes the objects of an item from the Watchers of all clusters except the given one. The other
// clusters no longer stay open for the item. If `except` is nil, no cluster stays open for the item.
func (s *clusters) removeObjects(uid types.UID, except *Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		if open != except {
			open.watcher.Forget(uid)
			delete(open.users, uid)
		}
	}
}
