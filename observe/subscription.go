// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/targets"
)

// pollInterval is the time between two reads of the objects of a Subscription if the cluster does not allow watching
// them.
const pollInterval = 30 * time.Second

// maxEarlyEvents limits the number of events that a Subscription stores before SetBaseline is called.
const maxEarlyEvents = 1000

// WatchRequest selects objects of one resource, which need not carry an owner label. Create it with ForObject or
// ForLabels.
type WatchRequest struct {
	watcher   *Watcher
	resource  schema.GroupVersionResource
	namespace string          // empty for all namespaces
	name      string          // the name of the object if the request selects a single object, otherwise empty
	labels    labels.Selector // matches everything if the request selects a single object
	found     versionBaseline // the objects as the caller has read them
}

// ForObject returns a request for one object. The namespace of key is empty if the resource is cluster-scoped.
// SubscribeAlone uses live, the object as the caller has read it, or nil if it does not exist.
func (w *Watcher) ForObject(resource schema.GroupVersionResource, key types.NamespacedName, live *unstructured.Unstructured) WatchRequest {
	found := versionBaseline{}
	if live != nil {
		found = newVersionBaseline(live)
	}
	return WatchRequest{watcher: w, resource: resource, namespace: key.Namespace, name: key.Name, labels: labels.Everything(), found: found}
}

// ForLabels returns a request for all objects of a resource, in all namespaces, that have the wanted labels.
// SubscribeAlone uses found, the objects that the caller has read.
func (w *Watcher) ForLabels(resource schema.GroupVersionResource, wanted map[string]string, found []*unstructured.Unstructured) WatchRequest {
	return WatchRequest{watcher: w, resource: resource, labels: labels.SelectorFromSet(wanted), found: newVersionBaseline(found...)}
}

// InNamespace returns a copy of the request that selects only objects in the given namespace.
func (r WatchRequest) InNamespace(namespace string) WatchRequest {
	r.namespace = namespace
	return r
}

// String returns a text that identifies the selected objects and the states in which the caller has read them.
func (r WatchRequest) String() string {
	found := make([]string, 0, len(r.found))
	for name, version := range r.found {
		found = append(found, fmt.Sprint(name, version))
	}
	slices.Sort(found)
	return fmt.Sprintf("%p %s %s %s %s: %s", r.watcher, r.resource, r.namespace, r.name, r.labels, strings.Join(found, ","))
}

// contains reports whether an object has the namespace and the name that the request selects.
func (r *WatchRequest) contains(live metav1.Object) bool {
	return (r.namespace == "" || r.namespace == live.GetNamespace()) && (r.name == "" || r.name == live.GetName())
}

// matches reports whether an object has the labels that the request selects.
func (r *WatchRequest) matches(live metav1.Object) bool {
	return r.labels.Matches(labels.Set(live.GetLabels()))
}

// Subscribe calls the function `changed` once when the selected objects have changed. Call Subscribe before you read
// the objects, and pass the objects to SetBaseline afterwards. The Subscription works until Stop is called.
//
// Subscriptions share one watch for all objects of the resource in the cluster. If this watch is not possible, because
// the cluster forbids it or there are too many watches or objects, they share a watch for all objects of the resource
// in the namespace of the request. If this watch is not possible either, Subscribe watches only the selected objects.
// If the cluster forbids that too, it lists them every 30 seconds. If listing fails, it calls the function `changed`
// after 30 seconds.
func (r WatchRequest) Subscribe(changed func()) *Subscription {
	s := newSubscription(r, changed)
	s.scopes = []scope{{resource: r.resource}, {resource: r.resource, only: s}}
	if r.namespace != "" {
		s.scopes = []scope{{resource: r.resource}, {resource: r.resource, namespace: r.namespace}, {resource: r.resource, namespace: r.namespace, only: s}}
	}
	s.mustPoll = true
	s.startWatching()
	return s
}

// SubscribeAlone calls the function `changed` once when an object differs from the objects that were passed to
// ForObject or ForLabels. It watches only the selected objects, and does nothing if that is not possible. The
// Subscription works until Stop is called.
func (r WatchRequest) SubscribeAlone(changed func()) *Subscription {
	s := newSubscription(r, changed)
	s.scopes = []scope{{resource: r.resource, namespace: r.namespace, only: s}}
	s.baseline = r.found
	s.startWatching()
	return s
}

// Subscription reports the first change of the objects that a WatchRequest selects. It is safe for concurrent use.
type Subscription struct {
	request  WatchRequest
	changed  func()
	scopes   []scope // the scopes of the watches to try, in this order
	mustPoll bool    // list the objects at intervals if no watch is possible
	ended    atomic.Bool
	source   atomic.Pointer[source] // nil if the subscription uses no watch

	mu          sync.Mutex
	baseline    versionBaseline    // nil until SetBaseline is called
	earlyEvents earlyEvents        // the events that arrived before SetBaseline was called
	stop        context.CancelFunc // stops polling; nil if the objects are not polled
}

// earlyEvents contains the events that a watch reports before SetBaseline is called. When the watch reads a complete
// list of the objects, the list replaces all earlier events.
type earlyEvents struct {
	last   map[types.NamespacedName]objectEvent
	listed string // the resource version of the last list; empty if there was none
	lost   bool   // there were too many events
}

// objectEvent contains the version of an object, and whether the object was deleted or is no longer selected.
type objectEvent struct {
	version Version
	deleted bool
}

func newSubscription(r WatchRequest, changed func()) *Subscription {
	return &Subscription{request: r, changed: changed, earlyEvents: earlyEvents{last: map[types.NamespacedName]objectEvent{}}}
}

// startWatching adds the subscription to the first watch that is possible. If no watch is possible, it polls instead.
func (s *Subscription) startWatching() {
	if s.ended.Load() {
		return
	}
	w := s.request.watcher
	joined, missed := w.addToSource(s)
	switch {
	case joined == nil && s.mustPoll:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.baseline != nil {
			s.startPolling()
		}
	case joined != nil && s.ended.Load(): // Stop may have been called before the source was set
		w.removeFromSource(s, joined)
	case missed && s.hasBaseline():
		s.notify() // the other source does not repeat the events between the two sources
	}
}

func (s *Subscription) hasBaseline() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.baseline != nil
}

// SetBaseline sets the objects with which later states are compared. The caller must read these objects after it has
// called Subscribe.
func (s *Subscription) SetBaseline(objects []*unstructured.Unstructured) {
	s.mu.Lock()
	s.baseline = newVersionBaseline(objects...)
	changed := s.earlyEvents.lost || s.hasMissing(s.earlyEvents.listed, s.earlyEvents.last)
	for name, event := range s.earlyEvents.last {
		changed = changed || s.isDifferent(name, event)
	}
	s.earlyEvents = earlyEvents{}
	if s.mustPoll && s.source.Load() == nil && !changed {
		s.startPolling()
	}
	s.mu.Unlock()
	if changed {
		s.notify()
	}
}

// observe handles an event of the source. If deleted is true, the object was deleted.
func (s *Subscription) observe(live *metav1.PartialObjectMetadata, deleted bool) {
	if !s.request.contains(live) {
		return
	}
	name := types.NamespacedName{Namespace: live.Namespace, Name: live.Name}
	event := objectEvent{version: GetVersion(live), deleted: deleted || !s.request.matches(live)}
	s.mu.Lock()
	if s.baseline == nil {
		s.earlyEvents.lost = s.earlyEvents.lost || len(s.earlyEvents.last) >= maxEarlyEvents
		if !s.earlyEvents.lost {
			s.earlyEvents.last[name] = event
		}
		s.mu.Unlock()
		return
	}
	differs := s.isDifferent(name, event)
	s.mu.Unlock()
	if differs {
		s.notify()
	}
}

// observeAll handles a list of all objects of the source.
func (s *Subscription) observeAll(objects []*metav1.PartialObjectMetadata, listed string) {
	found := map[types.NamespacedName]objectEvent{}
	for _, live := range objects {
		if s.request.contains(live) && s.request.matches(live) && len(found) < maxEarlyEvents {
			found[types.NamespacedName{Namespace: live.Namespace, Name: live.Name}] = objectEvent{version: GetVersion(live)}
		}
	}
	s.mu.Lock()
	if s.baseline == nil {
		s.earlyEvents = earlyEvents{last: found, listed: listed}
		s.mu.Unlock()
		return
	}
	differs := s.hasMissing(listed, found)
	for name, event := range found {
		differs = differs || s.isDifferent(name, event)
	}
	s.mu.Unlock()
	if differs {
		s.notify()
	}
}

// isDifferent reports whether an event describes a newer state of an object than the baseline. The caller holds the
// lock.
func (s *Subscription) isDifferent(name types.NamespacedName, event objectEvent) bool {
	before, known := s.baseline[name]
	switch {
	case !known:
		return !event.deleted
	case event.deleted:
		return !version.IsOlder(event.version.ResourceVersion, before.ResourceVersion)
	}
	return event.version.IsNewerThan(before)
}

// hasMissing reports whether an object of the baseline is missing from a list. It ignores objects that are newer than
// the list. The caller holds the lock.
func (s *Subscription) hasMissing(listed string, found map[types.NamespacedName]objectEvent) bool {
	if listed == "" {
		return false
	}
	for name, before := range s.baseline {
		if _, isFound := found[name]; !isFound && !version.IsOlder(listed, before.ResourceVersion) {
			return true
		}
	}
	return false
}

// notify calls the function `changed`, unless it was called before.
func (s *Subscription) notify() {
	if !s.ended.Swap(true) {
		s.changed()
	}
}

// IsCurrent reports whether the objects are known to be unchanged. It returns false while no watch is open.
func (s *Subscription) IsCurrent() bool {
	from := s.source.Load()
	if from == nil || s.ended.Load() {
		return false
	}
	from.w.mu.Lock()
	defer from.w.mu.Unlock()
	return from.isLive()
}

// HasEnded reports whether the objects have changed or Stop was called.
func (s *Subscription) HasEnded() bool { return s.ended.Load() }

// Stop ends the Subscription. After Stop has returned, the Subscription does not begin another call of the function
// `changed`. A call that began earlier may still be running.
func (s *Subscription) Stop() {
	s.ended.Store(true)
	if from := s.source.Load(); from != nil {
		s.request.watcher.removeFromSource(s, from)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		s.stop()
	}
}

// startPolling lists the objects at intervals, because they cannot be watched. The caller holds the lock.
func (s *Subscription) startPolling() {
	if s.stop != nil || s.ended.Load() {
		return
	}
	ctx, stop := context.WithCancel(context.Background()) // ends when the subscription or the Watcher ends
	s.stop = stop
	if !s.request.watcher.start(func(running context.Context) {
		defer context.AfterFunc(running, stop)()
		defer stop()
		s.poll(ctx)
	}) {
		stop()
	}
}

// poll lists the objects at intervals until they have changed or ctx ends. If they cannot be listed, it reports a
// change after an interval.
func (s *Subscription) poll(ctx context.Context) {
	w := s.request.watcher
	for {
		held, release := targets.ReserveMemory(ctx)
		opts := metav1.ListOptions{}
		scope{only: s}.selectObjects(&opts)
		list, err := w.client.Resource(s.request.resource).Namespace(s.request.namespace).List(held, opts)
		release()
		if err == nil {
			s.observeAll(toPointers(list.Items), list.ResourceVersion)
		}
		if s.ended.Load() || !w.sleep(ctx, pollInterval) {
			return
		}
		if err != nil {
			s.notify()
			return
		}
	}
}

// toPointers returns pointers to the elements of a list.
func toPointers(items []metav1.PartialObjectMetadata) []*metav1.PartialObjectMetadata {
	out := make([]*metav1.PartialObjectMetadata, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// sleep waits for the given time. It returns false if ctx ends before that.
func (w *Watcher) sleep(ctx context.Context, pause time.Duration) bool {
	passed := make(chan struct{})
	timer := w.opts.Clock.AfterFunc(pause, func() { close(passed) })
	defer timer.Stop()
	select {
	case <-passed:
		return true
	case <-ctx.Done():
		return false
	}
}
