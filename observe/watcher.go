// SPDX-License-Identifier: Apache-2.0

package observe

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
	// SubscriptionLimit is like Limit, but bounds the number of watches that are open only for Subscriptions.
	SubscriptionLimit *Limit
	// SyncTimeout limits how long Watch waits for the first list of a resource. The default is 10 s.
	SyncTimeout time.Duration
	// IdleTimeout is how long a watch stays open when no item needs it any more. The default is 10 min.
	IdleTimeout time.Duration
	// Clock provides the time. The default is the real clock.
	Clock clock.WithDelayedExecution
	// DynamicClient is the client for WatchObjects. If it is nil, the Watcher stores only metadata.
	DynamicClient dynamic.Interface
}

// Watcher watches the objects of deploy items in one target. Its methods are safe for concurrent use.
type Watcher struct {
	client metadata.Interface
	opts   Options

	running sync.WaitGroup

	mu           sync.Mutex
	ctx          context.Context //nolint:containedctx // bounds the lifetime of the watches; passed to Start
	sources      map[scope]*source
	stores       map[scope]*store // the sinks of the sources that store objects
	refusals     map[scope]*refusal
	whole        map[schema.GroupVersionResource]bool // the resources for which WatchObjects was called
	baselines    baselines
	inventories  inventories
	drift        callbacks[func(Drift)]
	change       map[types.UID]*callbacks[func(Object)]
	objectChange callbacks[func(types.UID)]
	watchLost    callbacks[func(types.UID)]
	unknown      callbacks[func(types.UID)]
}

// New returns a Watcher for the target that the client accesses. The Watcher does nothing before Start is called.
func New(client metadata.Interface, opts Options) *Watcher {
	opts.Limit = cmp.Or(opts.Limit, NewLimit(DefaultMaxWatches))
	opts.SubscriptionLimit = cmp.Or(opts.SubscriptionLimit, NewLimit(DefaultMaxWatches))
	opts.SyncTimeout = cmp.Or(opts.SyncTimeout, 10*time.Second)
	opts.IdleTimeout = cmp.Or(opts.IdleTimeout, 10*time.Minute)
	opts.Clock = cmp.Or[clock.WithDelayedExecution](opts.Clock, clock.RealClock{})
	w := &Watcher{
		client:    client,
		opts:      opts,
		sources:   map[scope]*source{},
		stores:    map[scope]*store{},
		refusals:  map[scope]*refusal{},
		whole:     map[schema.GroupVersionResource]bool{},
		baselines: baselines{items: map[types.UID]*baseline{}, objects: map[schema.GroupVersionResource]map[name]*expectation{}},
		change:    map[types.UID]*callbacks[func(Object)]{},
	}
	w.inventories = inventories{byName: map[uint64]*inventory{}, baselines: &w.baselines}
	return w
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
	w.waitForOpenings()
	w.running.Wait()
}

// waitForOpenings waits for the callers that are opening a watch at the moment. Each of them has then either opened the
// watch or noticed that ctx has ended.
func (w *Watcher) waitForOpenings() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// Get returns an object as the watch last reported it. It returns false if the object does not exist, if it is not
// watched, or if the watch is interrupted. If the watch has not seen the item's last write yet, Get returns the state
// that the API server returned for that write.
func (w *Watcher) Get(gvr schema.GroupVersionResource, name types.NamespacedName) (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.findStore(gvr, name.Namespace)
	if s == nil || !s.isLive() {
		return State{}, false
	}
	id := newName(name)
	r := s.objects[id]
	known := s.version
	if r != nil {
		known = r.version
	}
	if e := w.baselines.find(gvr, id); e != nil && version.IsOlder(known, e.version) {
		return State{UID: e.uid, ResourceVersion: e.version, Fingerprint: e.key, Item: e.baseline.item}, true
	}
	if r == nil {
		return State{}, false
	}
	return r.toState(), true
}

// start runs the function f in a goroutine of the Watcher. The context of f ends when the Watcher ends. If the Watcher
// is not running, start returns false and does not run f.
func (w *Watcher) start(f func(context.Context)) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx == nil || w.ctx.Err() != nil {
		return false
	}
	ctx := w.ctx
	w.running.Go(func() { f(ctx) })
	return true
}

// Stats contains counts for use in metrics.
type Stats struct {
	// Watches is the number of watches that are open or being opened.
	Watches int
	// Objects is the number of objects that are stored in memory.
	Objects int
	// Items is the number of items that SetBaseline has added and Forget has not removed.
	Items int
}

// GetStats returns the current counts. If Stats.Items is 0, the Watcher may be discarded.
func (w *Watcher) GetStats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := Stats{Watches: len(w.sources), Items: len(w.baselines.items)}
	for _, s := range w.stores {
		stats.Objects += len(s.objects)
	}
	return stats
}
