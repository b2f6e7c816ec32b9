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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/version"
)

// These are the pauses of a Follower after a watch that ended without an event, and where watching is refused.
const (
	followPause    = time.Second
	maxFollowPause = 30 * time.Second
)

// Follower reports changes of a sight. All followers of a kind share one watch.
type Follower struct {
	kinds   *kinds
	sight   Sight
	labels  labels.Selector
	name    string // if the sight is one object
	changed func()
	over    atomic.Bool
	watch   atomic.Pointer[kindWatch] // nil if none serves it

	mu    sync.Mutex
	seen  map[types.NamespacedName]string // the version of each object; nil before Saw
	early earlyEvents                     // events before Saw
	polls bool
	stop  context.CancelFunc // of the poll
}

// earlyEvents are the events of the watch since the last list.
type earlyEvents struct {
	last   map[types.NamespacedName]objectEvent
	listed string // the version of the list; empty if there was none
	lost   bool   // there were too many
}

// objectEvent is the version of an object, and whether the object is gone or no longer selected.
type objectEvent struct {
	version string
	gone    bool
}

// maxEarly limits the events of one follower before Saw.
const maxEarly = 1000

// Follow calls changed once when the objects of a sight differ from those that Saw was called with. Call Follow
// before the objects are read, and Saw after that. Unlike LookOut, the watch does not end with the run. The watch
// shows all objects of the kind, in the cluster or else in the namespace. Where both are refused, the sight has its
// own watch or, where that is refused too, is listed every 30 seconds. Where even that is refused, it counts as
// changed after that time.
func (k *Keeper) Follow(sight Sight, changed func()) *Follower {
	f := &Follower{kinds: k.clusters.kinds, sight: sight, changed: changed, stop: func() {}}
	f.early.last = map[types.NamespacedName]objectEvent{}
	f.labels, _ = labels.Parse(sight.selects.LabelSelector) // both are made by SightOf and SightOfAll
	if field, err := fields.ParseSelector(sight.selects.FieldSelector); err == nil {
		f.name, _ = field.RequiresExactMatch(metav1.ObjectNameField)
	}
	f.join()
	return f
}

// join joins a watch, or starts to poll.
func (f *Follower) join() {
	if f.over.Load() {
		return
	}
	if f.kinds.join(f) {
		if f.over.Load() { // Stop may have been called meanwhile without knowing of the watch
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

// serve records which watch serves the follower. The caller holds the lock of kinds.
func (f *Follower) serve(w *kindWatch) { f.watch.Store(w) }

// poll watches or lists the sight alone. The caller holds the lock.
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

// Saw sets the objects that were found.
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

// saw handles an event of the watch.
func (f *Follower) saw(live *metav1.PartialObjectMetadata, gone bool) {
	if f.sight.namespace != "" && f.sight.namespace != live.Namespace || f.name != "" && f.name != live.Name {
		return
	}
	name := types.NamespacedName{Namespace: live.Namespace, Name: live.Name}
	event := objectEvent{version: live.ResourceVersion, gone: gone || !f.selects(live)}
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

// sawAll handles a list of all objects.
func (f *Follower) sawAll(objects []*metav1.PartialObjectMetadata, listed string) {
	found := map[types.NamespacedName]objectEvent{}
	for _, live := range objects {
		if f.selects(live) && len(found) < maxEarly {
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

// selects reports whether an object belongs to the sight.
func (f *Follower) selects(live *metav1.PartialObjectMetadata) bool {
	return (f.sight.namespace == "" || f.sight.namespace == live.Namespace) && (f.name == "" || f.name == live.Name) &&
		f.labels.Matches(labels.Set(live.Labels))
}

// differs reports whether an event is newer than what was seen. The caller holds the lock.
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

// misses reports whether an object that was seen is missing in a list that is not older. The caller holds the lock.
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

// Holds reports whether a watch shows that nothing has changed.
func (f *Follower) Holds() bool {
	w := f.watch.Load()
	return w != nil && w.live() && !f.over.Load()
}

// Stop ends the following. After it has returned, changed is not called any more, except for a call in progress.
func (f *Follower) Stop() {
	f.over.Store(true)
	if w := f.watch.Load(); w != nil {
		f.kinds.leave(f, w)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stop()
}

// follow waits for a change. It returns false if ctx ended first, or if the target was closed.
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

// Landscaper gives access to objects of the Landscaper cluster.
type Landscaper struct {
	client.Reader // asks the API server each time

	cluster *Cluster // for sights
}

// Landscaper returns the cluster of the deploy items. It returns an error if no client can be made for it.
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

// In restricts a sight of several objects to a namespace.
func (s Sight) In(namespace string) Sight {
	s.namespace = namespace
	return s
}

// Of moves a sight to the Landscaper cluster, into the namespace of an item.
func (s Sight) Of(l *Landscaper, item *lsv1alpha1.DeployItem) Sight {
	s.cluster, s.namespace = l.cluster, item.Namespace
	return s
}
