// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/targets"
)

// clusters are the targets that the deployer uses. They run with the manager.
type clusters struct {
	keeper *Keeper
	pool   *targets.Pool
	limit  *watch.Limit
	guard  *watch.Guard
	seen   *prometheus.CounterVec // drift
	kinds  *kinds                 // of objects with other owners

	running sync.WaitGroup
	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the watches, nil before Start
	open    map[*targets.Client]*Cluster
}

func newClusters(k *Keeper, pool *targets.Pool) *clusters {
	fights := k.options.Fights
	fights.Clock = k.rt.Clock
	s := &clusters{
		keeper: k, pool: pool,
		limit: watch.NewLimit(watch.DefaultMaxWatches), guard: watch.NewGuard(fights),
		seen: newDriftCounter(), open: map[*targets.Client]*Cluster{},
	}
	s.kinds = newKinds(k.rt.Clock, s.whileOpen)
	return s
}

// whileOpen runs f in a goroutine as long as a cluster is open. The Landscaper cluster is open until the manager
// ends. whileOpen returns false if the cluster is not open.
func (s *clusters) whileOpen(at *Cluster, f func(context.Context)) bool {
	if at.all != nil {
		return at.Go(f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil || s.ctx.Err() != nil {
		return false
	}
	ctx := s.ctx
	s.running.Go(func() { f(ctx) })
	return true
}

// Start keeps clients and watches until ctx ends.
func (s *clusters) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	for _, metrics := range []prometheus.Collector{s.pool, s.seen} {
		if err := s.keeper.rt.Registerer.Register(metrics); err != nil {
			return fmt.Errorf("register metrics of targets: %w", err)
		}
		defer s.keeper.rt.Registerer.Unregister(metrics)
	}
	s.running.Go(func() { s.sweep(ctx) })
	err := s.pool.Start(ctx)
	s.mu.Lock()
	s.ctx = nil // nothing is started from now on
	s.mu.Unlock()
	s.running.Wait()
	return err
}

// NeedLeaderElection returns false, so that the clusters start before the deployer does.
func (s *clusters) NeedLeaderElection() bool { return false }

// get opens the target of an item.
func (s *clusters) get(ctx context.Context, target *lsv1alpha1.ResolvedTarget) (*Cluster, error) {
	c, err := s.pool.Get(ctx, target)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.open[c]; open != nil {
		open.used = s.keeper.rt.Clock.Now()
		return open, nil
	}
	if s.ctx == nil || s.ctx.Err() != nil {
		return nil, fmt.Errorf("the %s is not running", s.keeper.name())
	}
	return s.add(c)
}

// add adds watches to a client, with the same lifetime.
func (s *clusters) add(c *targets.Client) (*Cluster, error) {
	release, ok := c.Pin()
	if !ok {
		return nil, errors.New("the target was just closed")
	}
	metadataClient, err := metadata.NewForConfigAndClient(c.Config(), c.HTTPClient())
	if err != nil {
		release()
		return nil, fmt.Errorf("make client for watches: %w", err)
	}
	open := &Cluster{Client: c, metadata: metadataClient, ended: c.Done()}
	s.start(open, release)
	return open, nil
}

// start watches a cluster until it is no longer needed. release is called when the cluster has ended.
func (s *clusters) start(open *Cluster, release func()) {
	clk := s.keeper.rt.Clock
	open.watcher = watch.New(open.metadata, watch.Options{Limit: s.limit, Clock: clk})
	open.all, open.used, open.users, open.identity = s, clk.Now(), map[types.UID]bool{}, newIdentity()
	open.ctx, open.end = context.WithCancel(s.ctx)
	open.watcher.Subscribe(s.drifted)
	open.watcher.Start(open.ctx)
	s.open[open.Client] = open
	s.running.Go(func() {
		defer release()
		s.whileUsed(open)
		open.watcher.Wait()
		open.work.Wait()
	})
}

// idleCheck is how often each cluster is checked for being unused.
const idleCheck = 5 * time.Minute

// whileUsed closes a cluster when its client left the pool, when it is no longer needed, or when the manager ends.
func (s *clusters) whileUsed(open *Cluster) {
	ticker := s.keeper.rt.Clock.NewTicker(idleCheck)
	defer ticker.Stop()
	for {
		select {
		case <-open.ctx.Done():
		case <-open.ended:
		case <-ticker.C():
			if !s.closeIdle(open) {
				continue
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.close(open)
		return
	}
}

// closeIdle closes a cluster that no item needs. A cluster that was just requested is about to be needed.
func (s *clusters) closeIdle(open *Cluster) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := open.watcher.Stats()
	if stats.Items > 0 || stats.Watches > 0 || len(open.users) > 0 || s.keeper.rt.Clock.Since(open.used) < idleCheck {
		return false
	}
	s.close(open)
	return true
}

// close ends a cluster. A later request for its target gets a new one. The caller holds s.mu.
func (s *clusters) close(open *Cluster) {
	delete(s.open, open.Client)
	open.end()
}

// sweepEvery is how often the memory is searched for items that disappeared without a call of the deployer, such as
// by delete-without-uninstall.
const sweepEvery = 10 * time.Minute

// sweep forgets such items until ctx ends.
func (s *clusters) sweep(ctx context.Context) {
	ticker := s.keeper.rt.Clock.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			for uid, key := range s.keeper.items.keys() {
				s.forgetIfGone(ctx, uid, key)
			}
		}
	}
}

// forgetIfGone forgets an item that the cache no longer contains.
func (s *clusters) forgetIfGone(ctx context.Context, uid types.UID, key types.NamespacedName) {
	di := &lsv1alpha1.DeployItem{}
	err := s.keeper.rt.Landscaper.GetClient().Get(ctx, key, di)
	if err == nil && di.UID == uid || client.IgnoreNotFound(err) != nil {
		return
	}
	s.keeper.Forget(uid)
}

// leave ends what all clusters except one expect for an item.
func (s *clusters) leave(uid types.UID, except *Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		if open != except {
			open.watcher.Forget(uid)
			delete(open.users, uid)
		}
	}
}

// forget ends what all clusters expect for an item.
func (s *clusters) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, open := range s.open {
		open.watcher.Forget(uid)
		delete(open.users, uid)
	}
}
