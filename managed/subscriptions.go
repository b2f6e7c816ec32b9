// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/observe"
)

// maxWatchRequests is the maximum number of requests that are watched for a waiting item. If an item has more requests,
// none of them is watched, and the item is polled.
const maxWatchRequests = 16

// subscriptions watches the objects for which an item waits.
type subscriptions struct {
	requests string // identifies the requests and the states of their objects
	all      []*observe.Subscription
}

// WatchUntilChanged watches the objects that the requests select. When one of them changes, the item is reconciled
// again. The requests of an earlier call are no longer watched. WatchUntilChanged returns the time after which the
// objects must be read again if no watch reports a change. Pass this time to Wait as the last argument. It is shorter
// if not all requests are watched.
func (r *Run) WatchUntilChanged(requests []observe.WatchRequest) time.Duration {
	if len(requests) == 0 || len(requests) > maxWatchRequests {
		return pollIntervalUnwatched
	}
	if r.item.watchUntilChanged(requests) {
		return pollIntervalWatched
	}
	return pollIntervalUnwatched
}

// watchUntilChanged subscribes to the objects that the requests select, and ends the previous subscriptions. If the
// previous requests are the same and no object has changed, it keeps the subscriptions instead. The result reports
// whether all requests are watched.
func (i *item) watchUntilChanged(requests []observe.WatchRequest) (watched bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	text := fmt.Sprint(requests)
	if i.subscriptions.requests == text && !i.subscriptions.hasEnded() {
		return i.subscriptions.isCurrent()
	}
	i.subscriptions.stop()
	i.subscriptions.requests = text
	for _, request := range requests {
		i.subscriptions.all = append(i.subscriptions.all, request.SubscribeAlone(i.triggers.NotifyChange))
	}
	return false
}

// isCurrent reports whether all objects are known to be unchanged.
func (s *subscriptions) isCurrent() bool {
	for _, one := range s.all {
		if !one.IsCurrent() {
			return false
		}
	}
	return true
}

// hasEnded reports whether one of the objects has changed.
func (s *subscriptions) hasEnded() bool {
	for _, one := range s.all {
		if one.HasEnded() {
			return true
		}
	}
	return false
}

// stop ends all subscriptions.
func (s *subscriptions) stop() {
	for _, one := range s.all {
		one.Stop()
	}
	*s = subscriptions{}
}

// LandscaperCluster provides access to objects in the Landscaper cluster.
type LandscaperCluster struct {
	client.Reader // sends each read to the API server

	watcher *observe.Watcher
}

// Watcher returns the Watcher of the Landscaper cluster.
func (l *LandscaperCluster) Watcher() *observe.Watcher { return l.watcher }

// OpenLandscaper returns a client for the cluster that contains the deploy items. It returns an error if no client can
// be created or if the manager is not running.
func (m *ResourceManager) OpenLandscaper() (*LandscaperCluster, error) {
	return m.clusters.openLandscaper()
}

// openLandscaper returns the client of the Landscaper cluster, and creates it if necessary.
func (s *clusters) openLandscaper() (*LandscaperCluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.landscaper != nil {
		return s.landscaper, nil
	}
	if s.ctx == nil {
		return nil, errors.New("watch the Landscaper cluster: the manager is not running")
	}
	metadataClient, err := metadata.NewForConfig(s.manager.rt.Landscaper.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("make client of the Landscaper cluster: %w", err)
	}
	watcher := observe.New(metadataClient, observe.Options{Limit: s.limit, SubscriptionLimit: s.subscriptions, Clock: s.manager.rt.Clock})
	watcher.Start(s.ctx)
	s.running.Go(watcher.Wait)
	s.landscaper = &LandscaperCluster{Reader: s.manager.rt.Landscaper.GetAPIReader(), watcher: watcher}
	return s.landscaper, nil
}
