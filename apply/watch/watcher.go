// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/internal/version"
)

// Options of a Watcher. The zero value is ready to use.
type Options struct {
	// Limit bounds the open watches; give several Watchers the same one to bound them together. nil: one of
	// its own with DefaultMaxWatches.
	Limit *Limit
	// SyncTimeout bounds how long Watch waits for the first list of a resource. Zero: 10 s.
	SyncTimeout time.Duration
	// RetryRefused is how long a refusal by the target counts before the right is tried again. Zero: 10 min.
	RetryRefused time.Duration
	// Idle is how long a watch of which no item expects anything is kept. Zero: 10 min.
	Idle time.Duration
	// Clock tells the time. nil: the real one.
	Clock clock.PassiveClock
}

func (o Options) withDefaults() Options {
	if o.Limit == nil {
		o.Limit = NewLimit(DefaultMaxWatches)
	}
	if o.SyncTimeout == 0 {
		o.SyncTimeout = 10 * time.Second
	}
	if o.RetryRefused == 0 {
		o.RetryRefused = 10 * time.Minute
	}
	if o.Idle == 0 {
		o.Idle = 10 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Watcher watches the objects of deploy items in one target. Its methods are safe for concurrent use.
type Watcher struct {
	client metadata.Interface
	opts   Options

	running sync.WaitGroup

	mu          sync.Mutex
	ctx         context.Context //nolint:containedctx // the life of the watches, which Start is given
	streams     map[place]*stream
	refusals    map[place]refusal
	expected    map[schema.GroupVersionResource]expectations
	plans       map[types.UID]*plan
	subscribers map[int]func(Event)
	followers   map[types.UID]map[int]func(Object)
	lastID      int
}

// place is what one stream covers. An empty namespace is the whole cluster.
type place struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// New makes a Watcher for the target behind client. It does nothing before Start.
func New(client metadata.Interface, opts Options) *Watcher {
	return &Watcher{
		client:      client,
		opts:        opts.withDefaults(),
		streams:     map[place]*stream{},
		refusals:    map[place]refusal{},
		expected:    map[schema.GroupVersionResource]expectations{},
		plans:       map[types.UID]*plan{},
		subscribers: map[int]func(Event){},
		followers:   map[types.UID]map[int]func(Object){},
	}
}

// NewForConfig makes a Watcher for a target with a metadata client of its own.
func NewForConfig(config *rest.Config, opts Options) (*Watcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	return New(client, opts), nil
}

// Start lets Watch open watches until ctx ends; it returns at once. Everything that runs ends with ctx, and Wait
// waits for it. Call it once.
func (w *Watcher) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// Wait returns when ctx of Start has ended and nothing runs any more.
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

// settle waits until whoever was about to open a watch has done so, or has seen that ctx ended.
func (w *Watcher) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// Get is what is known of an object. false: the object is not there, or it is not watched, or the watch is
// interrupted, so that nothing certain can be said. If the answer to the item's last write is newer than what the watch
// has seen, Get tells what that answer said.
func (w *Watcher) Get(gvr schema.GroupVersionResource, name types.NamespacedName) (Seen, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.covering(gvr, name.Namespace)
	if s == nil || !s.live() {
		return Seen{}, false
	}
	r := s.objects[name]
	known := s.version
	if r != nil {
		known = r.version
	}
	if e := w.expected[gvr][name]; e != nil && version.Older(known, e.version) {
		return Seen{UID: e.uid, ResourceVersion: e.version, Key: e.key, Item: e.item}, true
	}
	if r == nil {
		return Seen{}, false
	}
	return r.seen(), true
}

// Stats are counts for metrics.
type Stats struct {
	// Watches that are open or being opened.
	Watches int
	// Objects in memory.
	Objects int
	// Items that expect something.
	Items int
}

// Stats counts. A Watcher without watches can be thrown away.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := Stats{Watches: len(w.streams), Items: len(w.plans)}
	for _, s := range w.streams {
		stats.Objects += len(s.objects)
	}
	return stats
}
