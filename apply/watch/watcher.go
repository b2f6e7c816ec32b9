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

// Options configure a Watcher. The zero value is ready to use.
type Options struct {
	// Limit bounds the open watches. Watchers with the same Limit share the bound. The default is a separate Limit of
	// DefaultMaxWatches.
	Limit *Limit
	// SyncTimeout limits how long Watch waits for the first list of a resource. The default is 10 s.
	SyncTimeout time.Duration
	// RetryRefused is how long to wait after a refusal by the target before the next attempt. The default is 10 min.
	RetryRefused time.Duration
	// Idle is how long a watch is kept without an item that expects something of it. The default is 10 min.
	Idle time.Duration
	// Clock provides the time. The default is the real clock.
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
	ctx         context.Context //nolint:containedctx // the life of the watches, passed to Start
	streams     map[place]*stream
	refusals    map[place]refusal
	expected    map[schema.GroupVersionResource]expectations
	plans       map[types.UID]*plan
	subscribers map[int]func(Event)
	followers   map[types.UID]map[int]func(Object)
	lastID      int
}

// place is what one stream covers. An empty namespace means the whole cluster.
type place struct {
	gvr       schema.GroupVersionResource
	namespace string
}

// New returns a Watcher for the target behind client. It does nothing before Start.
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

// NewForConfig returns a Watcher for a target, with its own metadata client.
func NewForConfig(config *rest.Config, opts Options) (*Watcher, error) {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make metadata client: %w", err)
	}
	return New(client, opts), nil
}

// Start lets Watch open watches until ctx ends, and returns at once. Everything that it starts ends with ctx, and
// Wait waits for that. Call Start once.
func (w *Watcher) Start(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ctx = ctx
}

// Wait returns when the ctx of Start has ended and nothing runs any more.
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

// settle waits until each caller that was about to open a watch has opened it, or has seen that ctx ended.
func (w *Watcher) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

// Get returns what is known about an object. It returns false if the object does not exist, or if it is not watched
// or the watch is interrupted, so that nothing certain is known. If the answer to the item's last write is newer than
// what the watch has seen, Get returns that answer.
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

// Stats contains counts for metrics.
type Stats struct {
	// Watches is the number of watches that are open or being opened.
	Watches int
	// Objects is the number of objects in memory.
	Objects int
	// Items is the number of items that expect something.
	Items int
}

// Stats returns the current counts. A Watcher without watches can be discarded.
func (w *Watcher) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	stats := Stats{Watches: len(w.streams), Items: len(w.plans)}
	for _, s := range w.streams {
		stats.Objects += len(s.objects)
	}
	return stats
}
