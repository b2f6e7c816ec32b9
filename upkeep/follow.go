// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/version"
)

// A Follower pauses before it opens a watch again that has ended without an event. The first pause takes followPause.
// Each further pause is twice as long, up to maxFollowPause. If the target does not allow watching, every pause takes
// maxFollowPause.
const (
	followPause    = time.Second
	maxFollowPause = 30 * time.Second
)

// Follower watches the objects that a Sight selects, and reports the first change of one of them. Followers for objects
// of the same kind share one watch.
type Follower struct {
	kinds   *kinds
	sight   Sight
	changed func()
	over    atomic.Bool
	watch   atomic.Pointer[kindWatch] // nil if the follower uses no shared watch

	mu    sync.Mutex
	seen  map[types.NamespacedName]string // the resource version of each object; nil until Saw is called
	early earlyEvents                     // the events that arrived before Saw was called
	polls bool
	stop  context.CancelFunc // stops polling
}

// earlyEvents contains the events that a watch reports before Saw is called. When the watch reads a complete list of
// the objects, the list replaces all earlier events.
type earlyEvents struct {
	last   map[types.NamespacedName]objectEvent
	listed string // the resource version of the last list; empty if there was none
	lost   bool   // there were too many events
}

// objectEvent contains the resource version of an object, and whether the object was deleted or is no longer selected.
type objectEvent struct {
	version string
	gone    bool
}

// maxEarly limits the number of events that a follower stores before Saw is called.
const maxEarly = 1000

// Follow calls the function `changed` once when the objects that a Sight selects have changed. Call Follow before you
// read the objects, and pass the objects to Saw afterwards. The Follower works until Stop is called, even after the end
// of the run. The watches of Run.LookOut, in contrast, end with the run.
//
// Follow uses one watch for all objects of the kind in the cluster. If this watch is not possible, because the target
// forbids it or there are too many watches or objects, Follow watches all objects of the kind in the namespace of the
// Sight. If this watch is not possible either, Follow watches only the selected objects. If the target forbids that too,
// Follow lists them every 30 seconds. If listing fails, Follow calls the function `changed` after 30 seconds.
func (k *Keeper) Follow(sight Sight, changed func()) *Follower {
	f := &Follower{kinds: k.clusters.kinds, sight: sight, changed: changed, stop: func() {}}
	f.early.last = map[types.NamespacedName]objectEvent{}
	f.join()
	return f
}

// join adds the follower to a shared watch. If no shared watch is possible, the follower polls instead.
func (f *Follower) join() {
	if f.over.Load() {
		return
	}
	if f.kinds.join(f) {
		if f.over.Load() { // Stop may have been called before the watch was set
			f.kinds.leave(f, f.watch.Load())
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen != nil {
		f.poll()
	}
}

// poll watches or lists the objects that the follower's Sight selects, without a shared watch. The caller holds the
// lock.
func (f *Follower) poll() {
	if f.polls {
		return
	}
	f.polls = true
	f.kinds.run(f.sight.cluster, func(ctx context.Context) {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		f.mu.Lock()
		f.stop = stop
		over := f.over.Load()
		f.mu.Unlock()
		if !over && f.sight.follow(ctx, f.kinds.clock) {
			f.tell()
		}
	})
}

// Saw sets the objects with which later states are compared. The caller must read these objects after it has called
// Follow.
func (f *Follower) Saw(objects []*unstructured.Unstructured) {
	f.mu.Lock()
	f.seen, f.sight.seen = make(map[types.NamespacedName]string, len(objects)), versions(objects)
	for _, obj := range objects {
		f.seen[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = obj.GetResourceVersion()
	}
	differs := f.early.lost || f.misses(f.early.listed, func(name types.NamespacedName) bool { _, found := f.early.last[name]; return found })
	for name, event := range f.early.last {
		differs = differs || f.differs(name, event)
	}
	f.early = earlyEvents{}
	if f.watch.Load() == nil && !differs {
		f.poll()
	}
	f.mu.Unlock()
	if differs {
		f.tell()
	}
}

// saw handles an event of the shared watch. The argument `gone` means that the object was deleted.
func (f *Follower) saw(live *metav1.PartialObjectMetadata, gone bool) {
	if !f.sight.covers(live) {
		return
	}
	name := types.NamespacedName{Namespace: live.Namespace, Name: live.Name}
	event := objectEvent{version: live.ResourceVersion, gone: gone || !f.sight.matches(live)}
	f.mu.Lock()
	if f.seen == nil {
		f.early.lost = f.early.lost || len(f.early.last) >= maxEarly
		if !f.early.lost {
			f.early.last[name] = event
		}
		f.mu.Unlock()
		return
	}
	differs := f.differs(name, event)
	f.mu.Unlock()
	if differs {
		f.tell()
	}
}

// sawAll handles a list of all objects that the shared watch covers.
func (f *Follower) sawAll(objects []*metav1.PartialObjectMetadata, listed string) {
	found := map[types.NamespacedName]objectEvent{}
	for _, live := range objects {
		if f.sight.covers(live) && f.sight.matches(live) && len(found) < maxEarly {
			found[types.NamespacedName{Namespace: live.Namespace, Name: live.Name}] = objectEvent{version: live.ResourceVersion}
		}
	}
	f.mu.Lock()
	if f.seen == nil {
		f.early = earlyEvents{last: found, listed: listed}
		f.mu.Unlock()
		return
	}
	differs := f.misses(listed, func(name types.NamespacedName) bool { _, there := found[name]; return there })
	for name, event := range found {
		differs = differs || f.differs(name, event)
	}
	f.mu.Unlock()
	if differs {
		f.tell()
	}
}

// covers reports whether an object has the namespace and the name that the Sight selects. The receiver is a pointer,
// because a copy of a Follower's Sight would also read the field that Saw sets.
func (s *Sight) covers(live *metav1.PartialObjectMetadata) bool {
	return (s.namespace == "" || s.namespace == live.Namespace) && (s.name == "" || s.name == live.Name)
}

// matches reports whether an object has the labels that the Sight selects.
func (s *Sight) matches(live *metav1.PartialObjectMetadata) bool {
	return s.labels.Matches(labels.Set(live.Labels))
}

// differs reports whether an event describes a newer state of an object than the one that was passed to Saw. The caller
// holds the lock.
func (f *Follower) differs(name types.NamespacedName, event objectEvent) bool {
	before, known := f.seen[name]
	switch {
	case !known:
		return !event.gone
	case version.Older(event.version, before):
		return false
	}
	return event.gone || event.version != before
}

// misses reports whether an object that was passed to Saw is missing from a list. It ignores objects that are newer
// than the list. The caller holds the lock.
func (f *Follower) misses(listed string, there func(types.NamespacedName) bool) bool {
	if listed == "" {
		return false
	}
	for name, before := range f.seen {
		if !there(name) && !version.Older(listed, before) {
			return true
		}
	}
	return false
}

func (f *Follower) tell() {
	if !f.over.Swap(true) {
		f.changed()
	}
}

// Holds reports whether the objects are known to be unchanged. It returns false while no watch is open.
func (f *Follower) Holds() bool {
	w := f.watch.Load()
	return w != nil && w.live() && !f.over.Load()
}

// Stop ends the Follower. After Stop has returned, the Follower does not begin another call of the function `changed`.
// A call that began earlier may still be running.
func (f *Follower) Stop() {
	f.over.Store(true)
	if w := f.watch.Load(); w != nil {
		f.kinds.leave(f, w)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
}

// follow waits until one of the selected objects changes. If it cannot list the objects, it returns true after
// maxFollowPause. It returns false if ctx ends or the cluster is closed before that.
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

// sleep waits for the given time. It returns false if ctx ended or the cluster was closed before that.
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

// Landscaper provides access to objects in the Landscaper cluster.
type Landscaper struct {
	client.Reader // sends each read to the API server

	cluster *Cluster // the Landscaper cluster
}

// Landscaper returns a client for the cluster that contains the deploy items. It returns an error if no client can be
// created.
func (k *Keeper) Landscaper() (*Landscaper, error) { return k.landscaper() }

func (k *Keeper) openLandscaper() (*Landscaper, error) {
	metadataClient, err := metadata.NewForConfig(k.rt.Landscaper.GetConfig())
	if err != nil {
		return nil, fmt.Errorf("make client of the Landscaper cluster: %w", err)
	}
	return &Landscaper{Reader: k.rt.Landscaper.GetAPIReader(), cluster: &Cluster{metadata: metadataClient}}, nil
}

// In returns a copy of a Sight that SightOfAll returned. The copy selects only objects in the given namespace.
func (s Sight) In(namespace string) Sight {
	s.namespace = namespace
	return s
}

// Of returns a copy of the Sight. The copy selects objects in the Landscaper cluster, in the namespace of the item.
func (s Sight) Of(l *Landscaper, item *lsv1alpha1.DeployItem) Sight {
	s.cluster, s.namespace = l.cluster, item.Namespace
	return s
}
