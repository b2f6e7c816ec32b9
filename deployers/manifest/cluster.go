// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/targets"
)

// cluster is a target with its watches.
type cluster struct {
	*targets.Client

	metadata metadata.Interface
	ended    <-chan struct{} // closed when the client leaves the pool
	watcher  *watch.Watcher
	statuses sync.Map // by GroupVersionKind: whether somebody writes a status
}

// Seen makes the watches a Lookup for the engine.
func (c *cluster) Seen(resource schema.GroupVersionResource, name types.NamespacedName) (apply.Seen, bool) {
	seen, known := c.watcher.Get(resource, name)
	return apply.Seen{UID: seen.UID, Key: seen.Key, Deleting: seen.Deleting, ResourceVersion: seen.ResourceVersion}, known
}

// watch begins to watch a resource before the engine asks what was seen. Whether
// that worked is looked at afterwards, see observe.
func (c *cluster) watch(ctx context.Context, resource schema.GroupVersionResource, namespaces []string) {
	_, _ = c.watcher.Watch(ctx, resource, namespaces...)
}

// clusters are the targets that the deployer works on. It runs with the manager.
type clusters struct {
	pool  *targets.Pool
	items *items
	rt    deployerlib.Runtime
	limit *watch.Limit
	guard *watch.Guard
	seen  *prometheus.CounterVec // drift

	running sync.WaitGroup
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the watches, nil before Start
	open    map[*targets.Client]*cluster
}

func newClusters(pool *targets.Pool, items *items, rt deployerlib.Runtime) *clusters {
	return &clusters{
		pool: pool, items: items, rt: rt,
		limit: watch.NewLimit(watch.DefaultMaxWatches), guard: watch.NewGuard(watch.GuardOptions{Clock: rt.Clock}),
		seen: newDriftCounter(), open: map[*targets.Client]*cluster{},
	}
}

// errNotRunning is what calls before the start or after the end get.
var errNotRunning = errors.New("the manifest deployer is not running")

// Start keeps clients and watches until ctx ends.
func (s *clusters) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	for _, metrics := range []prometheus.Collector{s.pool, s.seen} {
		if err := s.rt.Registerer.Register(metrics); err != nil {
			return fmt.Errorf("register metrics of targets: %w", err)
		}
		defer s.rt.Registerer.Unregister(metrics)
	}
	s.running.Go(func() { s.sweep(ctx) })
	err := s.pool.Start(ctx)
	s.mu.Lock()
	s.ctx = nil // nobody begins anything any more
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// NeedLeaderElection makes it start before the deployer does.
func (s *clusters) NeedLeaderElection() bool { return false }

// get opens the target of an item.
func (s *clusters) get(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*cluster, error) {
	c, err := s.pool.Get(ctx, target)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[c]; open != nil {
		return open, nil
	}
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, errNotRunning
	}
	return s.add(c)
}

// add gives a client watches, which live as long as it does.
func (s *clusters) add(c *targets.Client) (*cluster, error) {
	release, ok := c.Pin()
	if !ok {
		return nil, errors.New("the target was just closed")
	}
	metadataClient, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
	if err != nil {
		release()
		return nil, fmt.Errorf("make client for watches: %w", err)
	}
	open := &cluster{Client: c, metadata: metadataClient, ended: c.Done(), watcher: watch.New(metadataClient, watch.Options{Limit: s.limit, Clock: s.rt.Clock})}
	ctx, cancel := context.WithCancel(s.ctx)
	open.watcher.Subscribe(s.drifted)
	open.watcher.Start(ctx)
	s.open[c] = open
	s.running.Go(func() {
		defer release()
		defer cancel()
		s.whileUsed(ctx, open)
		cancel()
		open.watcher.Wait()
	})
	return open, nil
}

// idleCheck is how often a cluster is looked at that may not be needed any more.
const idleCheck = 5 * time.Minute

// whileUsed returns when the client left the pool, or nobody expects anything of its watches.
func (s *clusters) whileUsed(ctx context.Context, open *cluster) {
	ticker := time.NewTicker(idleCheck)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-open.Done():
			s.close(open)
			return
		case <-ticker.C:
			if stats := open.watcher.Stats(); stats.Items == 0 && stats.Watches == 0 {
				s.close(open)
				return
			}
		}
	}
}

func (s *clusters) close(open *cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, open.Client)
}

// sweepEvery is how often the memory is searched for items that went without
// our doing, such as by delete-without-uninstall.
const sweepEvery = 10 * time.Minute

// sweep forgets such items until ctx ends.
func (s *clusters) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for uid, key := range s.items.keys() {
				s.forgetIfGone(ctx, uid, key)
			}
		}
	}
}

// forgetIfGone forgets an item that the cache does not have any more.
func (s *clusters) forgetIfGone(ctx context.Context, uid types.UID, key types.NamespacedName) {
	di := &lsv1alpha1.DeployItem{}
	err := s.rt.Landscaper.GetClient().Get(ctx, key, di)
	if err == nil && di.UID == uid || client.IgnoreNotFound(err) != nil {
		return
	}
	s.mu.Lock()
	for _, open := range s.open {
		open.watcher.Forget(uid)
	}
	s.mu.Unlock()
	s.items.forget(uid)
}

// drifted notes a drift and wakes the item. It is called by watches and never blocks.
func (s *clusters) drifted(e watch.Event) {
	it := s.items.find(e.Item)
	if it == nil {
		return
	}
	heal := s.guard.Heal(e)
	it.drifted(drift{Event: e, Heal: heal}, s.rt.Clock.Now().Add(heal.Delay))
	s.seen.WithLabelValues(string(e.What)).Inc()
	s.rt.Trigger(it.key)
}
