// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// refusal is the error if the target refused a watch. As long as a refusal is stored, the request is not repeated.
type refusal struct {
	reason    string
	forbidden bool // a smaller scope may be allowed; if false, the resource cannot be watched at all
	missing   bool // the target did not serve the resource
	until     time.Time
}

func (r *refusal) Error() string { return r.reason }

const (
	// refusedRetryDelay is how long the watcher waits before it repeats a request that the target refused.
	refusedRetryDelay = 10 * time.Minute
	// missingRetryDelay is how long the watcher waits before it repeats a request for a resource that the target did not
	// serve. The time is short because items install CustomResourceDefinitions.
	missingRetryDelay = 10 * time.Second
)

// MarkServed records that the target serves a resource now, because an object of the resource was read or written. If
// the target refused a watch because it did not serve the resource, the next call of Watch repeats the request.
func (w *Watcher) MarkServed(gvr schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.refusals, func(s scope, r *refusal) bool { return s.resource == gvr && r.missing })
}

// openResult is the result of Watcher.open: a source, or the reason why there is none.
type openResult struct {
	source *source
	isNew  bool // this call of Watcher.open started the source, not an earlier call
	err    error
}

// openStore returns the existing source that stores the objects of a scope, or starts one.
func (w *Watcher) openStore(in scope) openResult {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open(in, w.opts.Limit, func(s *source) sink {
		s.whole = w.whole[in.resource]
		st := &store{source: s, objects: map[name]*storedObject{}}
		w.stores[in] = st
		return st
	})
}

// open returns the existing source of a scope. If there is none, it starts one, with the sink that the function
// `newSink` returns. The caller holds the lock.
func (w *Watcher) open(in scope, limit *Limit, newSink func(*source) sink) openResult {
	now := w.opts.Clock.Now()
	if s := w.sources[in]; s != nil {
		s.used = now
		return openResult{source: s}
	}
	if r := w.refusals[in]; r != nil && now.Before(r.until) {
		return openResult{err: r}
	}
	switch {
	case w.ctx == nil:
		return openResult{err: newNotWatchedError(in, "the watcher is not started")}
	case w.ctx.Err() != nil:
		return openResult{err: newNotWatchedError(in, "the watcher has ended")}
	}
	w.stopIdle()
	if !limit.acquire() {
		return openResult{err: newNotWatchedError(in, fmt.Sprintf("the limit of %d watches is reached", limit.max))}
	}
	ctx, stop := context.WithCancel(w.ctx)
	s := &source{w: w, scope: in, stop: stop, used: now, changed: make(chan struct{})}
	s.sink = newSink(s)
	w.sources[in] = s
	w.running.Go(func() {
		defer limit.release()
		defer w.removeEnded(s)
		s.run(ctx)
	})
	return openResult{source: s, isNew: true}
}

// wait waits until the source has received all objects, and returns nil. If this does not happen, wait returns the
// reason.
func (o openResult) wait(ctx context.Context) error {
	if o.source == nil {
		return o.err
	}
	s := o.source
	for {
		s.w.mu.Lock()
		live, refused, trouble, ended, news := s.isLive(), s.refused, s.lastErr, s.hasEnded(), s.changed
		s.w.mu.Unlock()
		switch {
		case live:
			return nil
		case refused != nil:
			return refused
		case trouble != nil && !o.isNew: // a source that was started by an earlier call has had enough time
			return newNotWatchedError(s.scope, trouble.Error())
		case ended:
			return newNotWatchedError(s.scope, "the watch has ended")
		}
		select {
		case <-news:
		case <-s.w.ctx.Done():
			return newNotWatchedError(s.scope, "the watcher has ended")
		case <-ctx.Done():
			return newNotWatchedError(s.scope, cmp.Or(trouble, errNoAnswer).Error())
		}
	}
}

// handleRefusal ends a source that the target does not allow, stores the refusal, and informs those who lose the watch.
// The caller does not hold the lock.
func (w *Watcher) handleRefusal(s *source, err error) {
	w.mu.Lock()
	if s.hasEnded() {
		w.mu.Unlock()
		return
	}
	pause := refusedRetryDelay
	if apierrors.IsNotFound(err) {
		pause = missingRetryDelay
	}
	s.refused = &refusal{
		reason: newNotWatchedError(s.scope, err.Error()).Error(), until: w.opts.Clock.Now().Add(pause),
		forbidden: apierrors.IsForbidden(err), missing: apierrors.IsNotFound(err),
	}
	if s.scope.only == nil { // a Subscription does not repeat the request for its own watch
		w.refusals[s.scope] = s.refused
	}
	inform := s.sink.onRefused()
	w.stopSource(s)
	w.mu.Unlock()
	inform()
}

// stopSource stops a source and discards its objects. The caller holds the lock.
func (w *Watcher) stopSource(s *source) {
	s.stop()
	s.sink.reset()
	s.synced = false
	delete(w.sources, s.scope)
	delete(w.stores, s.scope)
	s.notify()
}

// removeEnded removes a source after its goroutine has returned.
func (w *Watcher) removeEnded(s *source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !s.hasEnded() {
		w.stopSource(s)
	}
	s.stop()
}

// findStore returns the store that contains the objects of a namespace, or nil. It returns the store of the whole
// cluster only if that store has received its first list. The caller holds the lock.
func (w *Watcher) findStore(gvr schema.GroupVersionResource, namespace string) *store {
	whole := w.stores[newStoredScope(gvr, "")]
	if namespace == "" || whole != nil && whole.synced {
		return whole
	}
	if s := w.stores[newStoredScope(gvr, namespace)]; s != nil {
		return s
	}
	return whole
}

// stopNarrower ends the sources of single namespaces if the given scope is the whole cluster, because its source
// replaces them now. The caller holds the lock.
func (w *Watcher) stopNarrower(in scope) {
	for other, s := range w.stores {
		if in.namespace == "" && other.resource == in.resource && other.namespace != "" {
			w.stopSource(s.source)
		}
	}
}

// stopIdle ends the sources that no item has needed for at least the time Options.IdleTimeout. It also removes expired
// refusals. The caller holds the lock.
func (w *Watcher) stopIdle() {
	now := w.opts.Clock.Now()
	for _, s := range w.sources {
		if now.Sub(s.used) >= w.opts.IdleTimeout && !s.sink.isNeeded() {
			w.stopSource(s)
		}
	}
	maps.DeleteFunc(w.refusals, func(_ scope, r *refusal) bool { return !now.Before(r.until) })
}

func newNotWatchedError(in scope, reason string) error {
	where := "the cluster"
	if in.namespace != "" {
		where = "namespace " + in.namespace
	}
	return fmt.Errorf("%s in %s: %s", in.resource.GroupResource(), where, strings.Join(strings.Fields(reason), " "))
}
