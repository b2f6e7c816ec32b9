// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pauses of a Follower: after a watch that ended without an event, and where watching is refused.
const (
	followPause    = time.Second
	maxFollowPause = 30 * time.Second
)

// Follower watches a sight until it changes or Stop is called, however long that takes.
type Follower struct {
	over atomic.Bool
	stop context.CancelFunc
}

// Holds reports whether nothing has changed as far as is known.
func (f *Follower) Holds() bool { return !f.over.Load() }

// Stop ends the watch. Nothing is called any more after it returned, but for a call that is under way.
func (f *Follower) Stop() {
	f.over.Store(true)
	f.stop()
}

// FollowSight calls changed once when a sight changes. Unlike that of LookOut, its watch does not end with the run, and is opened
// again when the server ends it. Where watching is refused the sight is listed every 30 seconds; where that is refused too, it
// counts as changed by then.
func (k *Keeper) FollowSight(sight Sight, changed func()) *Follower {
	s := k.clusters
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &Follower{stop: func() {}}
	if s.ctx == nil || s.ctx.Err() != nil {
		f.over.Store(true)
		return f
	}
	ctx, stop := context.WithCancel(s.ctx)
	f.stop = stop
	s.running.Go(func() {
		defer stop()
		if sight.follow(ctx, k.rt.Clock) && !f.over.Swap(true) {
			changed()
		}
	})
	return f
}

// follow waits for a change. false: ctx ended before, or the target was closed.
func (s Sight) follow(ctx context.Context, clk clock.Clock) (changed bool) {
	for pause := followPause; ; pause = min(2*pause, maxFollowPause) {
		switch s.wait(ctx, func() {}) {
		case sightChanged:
			return true
		case sightClosed:
			return false
		case sightEnded:
			if !s.sleep(ctx, clk, pause) {
				return false
			}
		case sightUnwatched:
			if !s.sleep(ctx, clk, maxFollowPause) {
				return false
			}
		case sightRefused:
			return s.sleep(ctx, clk, maxFollowPause)
		}
	}
}

// sleep reports whether the time passed before ctx or the cluster ended.
func (s Sight) sleep(ctx context.Context, clk clock.Clock, pause time.Duration) bool {
	timer := clk.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
	case <-s.cluster.ended:
	}
	return false
}

// Landscaper is the Landscaper cluster as far as it can be looked at.
type Landscaper struct {
	client.Reader // asks the API server each time

	cluster *Cluster // for sights
}

// Landscaper returns the cluster of the deploy items.
// Errors: no client can be made for it.
func (k *Keeper) Landscaper() (*Landscaper, error) {
	k.landscaperOnce.Do(func() {
		metadataClient, err := metadata.NewForConfig(k.rt.Landscaper.GetConfig())
		if err != nil {
			k.landscaperErr = fmt.Errorf("make client of the Landscaper cluster: %w", err)
			return
		}
		k.landscaper = &Landscaper{Reader: k.rt.Landscaper.GetAPIReader(), cluster: &Cluster{metadata: metadataClient}}
	})
	return k.landscaper, k.landscaperErr
}

// In narrows a sight of several objects down to a namespace.
func (s Sight) In(namespace string) Sight {
	s.namespace = namespace
	return s
}

// Of moves a sight to the Landscaper cluster, into the namespace of an item.
func (s Sight) Of(l *Landscaper, item *lsv1alpha1.DeployItem) Sight {
	s.cluster, s.namespace = l.cluster, item.Namespace
	return s
}
