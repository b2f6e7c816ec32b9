// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/internal/version"
)

// Options configure a Watcher. The zero value is ready for use.
type Options struct {
	// Limit bounds the number of open watches. Several Watchers may share a Limit. By default, the Watcher has its own
	// Limit of DefaultMaxWatches.
	Limit *Limit
	// SyncTimeout limits how long Watch waits for the first list of a resource. The default is 10 s.
	SyncTimeout time.Duration
	// Idle is how long a watch stays open when no item needs it any more. The default is 10 min.
	Idle time.Duration
	// Clock provides the time. The default is the real clock.
	Clock clock.PassiveClock
	// Objects is the client for WatchObjects. If it is nil, the Watcher stores only metadata.
	Objects dynamic.Interface
}

// Watcher watches the objects of deploy items in one target. Its methods are safe for concurrent use.
type Watcher struct {
	client metadata.Interface
	opts   Options

	running sync.WaitGroup

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // bounds the lifetime of the watches; passed to Start
	streams     map[place]*stream
	refusals    map[place]*refusal
	whole       map[schema.GroupVersionResource]bool // the resources for which WatchObjects was called
	expected    map[schema.GroupVersionResource]expectations
	plans       map[types.UID]*plan
	subscribers map[int]func(Event)
	followers   map[types.UID]map[int]func(Object)
	observers   map[int]func(types.UID) // registered by FollowObjects
	losses      map[int]func(types.UID) // registered by FollowLosses
	unknown     map[int]func(types.UID) // registered by FollowUnknown
	known       map[uint64]*known       // by the key of the name of the item, see nameKey
	lastID      int
}

// place identifies the resource and the namespace that one stream watches. An empty namespace stands for the whole
// cluster.
type place struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// contains reports whether the place contains an object with the given name.
func (p place) contains(id name) bool {
	return p.namespace == "" || p.namespace == id.namespace.Value()
}

// New returns a Watcher for the target that the client accesses. The Watcher does nothing before Start is called.
func New(client metadata.Interface, opts Options) *Watcher {
	opts.Limit = cmp.Or(opts.Limit, NewLimit(DefaultMaxWatches))
	opts.SyncTimeout = cmp.Or(opts.SyncTimeout, 10*time.Second)
	opts.Idle = cmp.Or(opts.Idle, 10*time.Minute)
	opts.Clock = cmp.Or[clock.PassiveClock](opts.Clock, clock.RealClock{})
	return &Watcher{
		client:      client,
		opts:        opts,
		streams:     map[place]*stream{},
		refusals:    map[place]*refusal{},
		whole:       map[schema.GroupVersionResource]bool{},
		expected:    map[schema.GroupVersionResource]expectations{},
		plans:       map[types.UID]*plan{},
		subscribers: map[int]func(Event){},
		followers:   map[types.UID]map[int]func(Object){},
		observers:   map[int]func(types.UID){},
		losses:      map[int]func(types.UID){},
		unknown:     map[int]func(types.UID){},
		known:       map[uint64]*known{},
	}
}

// NewForConfig returns a Watcher for a target. It creates a metadata client for the config.
func NewForConfig(config *rest.Config, opts Options) (*Watcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	return New(client, opts), nil
}

// Start allows Watch to open watches until ctx ends, and returns at once. All goroutines that the Watcher starts end
// with ctx; use Wait to wait for them. Call Start only once.
func (w *Watcher) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// Wait waits until the ctx that was passed to Start has ended and all goroutines of the Watcher have returned.
func (w *Watcher) Wait() {
	w.mu.Lock()
	ctx := w.ctx
	w.mu.Unlock()
	if ctx == nil {
		return
	}
	<-ctx.Done()
	w.settle()
	w.running.Wait()
}

// settle waits for the callers that are opening a watch at the moment. Each of them has then either opened the watch or
// noticed that ctx has ended.
func (w *Watcher) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// Get returns an object as the watch last reported it. It returns false if the object does not exist, if it is not
// watched, or if the watch is interrupted. If the watch has not seen the item's last write yet, Get returns the state
// that the API server returned for that write.
func (w *Watcher) Get(gvr schema.GroupVersionResource, name types.NamespacedName) (Seen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.covering(gvr, name.Namespace)
	if s == nil || !s.live() {
		return Seen{}, false
	}
	id := nameOf(name)
	r := s.objects[id]
	known := s.version
	if r != nil {
		known = r.version
	}
	if e := w.expected[gvr][id]; e != nil && version.Older(known, e.version) {
		return Seen{UID: e.uid, ResourceVersion: e.version, Key: e.key, Item: e.plan.item}, true
	}
	if r == nil {
		return Seen{}, false
	}
	return r.seen(), true
}

// Stats contains counts for use in metrics.
type Stats struct {
	// Watches is the number of watches that are open or being opened.
	Watches int
	// Objects is the number of objects that are stored in memory.
	Objects int
	// Items is the number of items that Expect has added and Forget has not removed.
	Items int
}

// Stats returns the current counts. If Stats.Items is 0, the Watcher may be discarded.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := Stats{Watches: len(w.streams), Items: len(w.plans)}
	for _, s := range w.streams {
		stats.Objects += len(s.objects)
	}
	return stats
}
