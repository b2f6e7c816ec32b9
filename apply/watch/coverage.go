// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Scope is the extent to which a resource is watched.
type Scope string

const (
	// Cluster means that all objects of the resource are watched.
	Cluster Scope = "Cluster"
	// Namespaces means that the objects in Coverage.Namespaces are watched.
	Namespaces Scope = "Namespaces"
	// None means that nothing is watched.
	None Scope = "None"
)

// Coverage describes what Watch achieved for a resource.
type Coverage struct {
	Scope Scope
	// Namespaces are the watched namespaces, sorted. It is empty unless Scope is Namespaces.
	Namespaces []string
	// Missing are the namespaces that were requested but are not watched, sorted.
	Missing []string
	// Reason explains in one line why the whole cluster is not watched. It is empty if Scope is Cluster.
	Reason string
}

// Covers reports whether drift of objects in a namespace is seen. An empty namespace stands for objects without a
// namespace.
func (c Coverage) Covers(namespace string) bool {
	return c.Scope == Cluster || c.Scope == Namespaces && slices.Contains(c.Namespaces, namespace)
}

// refusal records an answer of the target, so that not every run asks again for what the target refuses.
type refusal struct {
	reason error
	until  time.Time
}

// retryMissing is how long the watcher waits before it asks again for a resource that the target does not have. It is
// short, because the next object that an item applies may define the resource.
const retryMissing = 10 * time.Second

// Watch ensures that a resource is watched, and waits for the first list. It watches the whole cluster if the target
// allows that, else each of the namespaces, else nothing. A watch that already runs costs nothing. namespaces are
// those in which the item has objects of the resource. It is empty for resources without namespaces.
//
// Watch returns the error of ctx. It is not an error if something cannot be watched: Coverage describes what and why.
// If a target does not answer in time, the attempts continue in the background, and the next call returns their
// result.
func (w *Watcher) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespaces ...string) (Coverage, error) {
	waiting, cancel := context.WithTimeout(ctx, w.opts.SyncTimeout)
	defer cancel()
	whole := w.open(place{gvr: gvr})
	reason := whole.await(waiting)
	if reason == nil {
		return Coverage{Scope: Cluster}, ctx.Err()
	}
	namespaces = distinct(namespaces)
	none := Coverage{Scope: None, Missing: namespaces, Reason: reason.Error()}
	if !isNarrower(reason) || len(namespaces) == 0 {
		return none, ctx.Err()
	}
	streams := make([]opening, 0, len(namespaces))
	for _, namespace := range namespaces {
		streams = append(streams, w.open(place{gvr, namespace}))
	}
	c := Coverage{Scope: Namespaces, Reason: reason.Error()}
	for i, o := range streams {
		if err := o.await(waiting); err != nil {
			c.Missing, c.Reason = append(c.Missing, namespaces[i]), err.Error()
			continue
		}
		c.Namespaces = append(c.Namespaces, namespaces[i])
	}
	if len(c.Namespaces) == 0 {
		c.Scope = None
	}
	return c, ctx.Err()
}

func distinct(namespaces []string) []string {
	out := slices.Clone(namespaces)
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(out, func(n string) bool { return n == "" })
}

// opening is a stream, or the reason why there is none.
type opening struct {
	stream *stream
	fresh  bool // opened by this call
	err    error
}

// open finds or starts the stream of a place.
func (w *Watcher) open(p place) opening {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opts.Clock.Now()
	if s := w.streams[p]; s != nil {
		s.used = now
		return opening{stream: s}
	}
	if r, ok := w.refusals[p]; ok && now.Before(r.until) {
		return opening{err: r.reason}
	}
	delete(w.refusals, p)
	switch {
	case w.ctx == nil:
		return opening{err: notWatched(p, "the watcher is not started")}
	case w.ctx.Err() != nil:
		return opening{err: notWatched(p, "the watcher has ended")}
	}
	w.collect()
	if !w.opts.Limit.take() {
		return opening{err: notWatched(p, fmt.Sprintf("the limit of %d watches is reached", w.opts.Limit.max))}
	}
	ctx, stop := context.WithCancel(w.ctx)
	s := &stream{
		w: w, place: p, stop: stop, used: now,
		objects: map[types.NamespacedName]*reduced{}, news: make(chan struct{}),
	}
	w.streams[p] = s
	w.running.Go(func() {
		defer w.opts.Limit.give()
		defer w.ended(s)
		s.run(ctx)
	})
	return opening{stream: s, fresh: true}
}

// await returns nil once the stream works, and otherwise the reason why it does not.
func (o opening) await(ctx context.Context) error {
	if o.stream == nil {
		return o.err
	}
	s := o.stream
	for {
		s.w.mu.Lock()
		live, refused, trouble, news := s.live(), s.refused, s.trouble, s.news
		s.w.mu.Unlock()
		switch {
		case live:
			return nil
		case refused != nil:
			return refused
		case trouble != nil && !o.fresh: // an older stream had its time already
			return notWatched(s.place, trouble.Error())
		}
		select {
		case <-news:
		case <-s.w.ctx.Done():
			return notWatched(s.place, "the watcher has ended")
		case <-ctx.Done():
			if trouble != nil {
				return notWatched(s.place, trouble.Error())
			}
			return notWatched(s.place, "the target did not answer in time")
		}
	}
}

// refuse ends a stream that the target does not allow, and records the refusal. The caller holds the lock.
func (w *Watcher) refuse(s *stream, err error) {
	s.refused = &refusedError{reason: notWatched(s.place, err.Error()).Error(), forbidden: apierrors.IsForbidden(err)}
	rest := w.opts.RetryRefused
	if !apierrors.IsForbidden(err) {
		rest = min(rest, retryMissing)
	}
	w.refusals[s.place] = refusal{reason: s.refused, until: w.opts.Clock.Now().Add(rest)}
	w.end(s)
	s.changed()
}

// end stops a stream and releases its objects. The caller holds the lock.
func (w *Watcher) end(s *stream) {
	s.stop()
	s.objects, s.synced = nil, false
	delete(w.streams, s.place)
}

// ended cleans up after a stream that ended by itself.
func (w *Watcher) ended(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[s.place] == s {
		w.end(s)
	}
	s.stop()
}

// covering returns the stream that covers a namespace, or nil. While the watcher retries to watch the whole cluster,
// the streams of namespaces still count. The caller holds the lock.
func (w *Watcher) covering(gvr schema.GroupVersionResource, namespace string) *stream {
	whole := w.streams[place{gvr: gvr}]
	if namespace == "" || whole != nil && whole.synced {
		return whole
	}
	if s := w.streams[place{gvr, namespace}]; s != nil {
		return s
	}
	return whole
}

// widened ends the streams of namespaces that the stream of the whole cluster replaces. The caller holds the lock.
func (w *Watcher) widened(p place) {
	if p.namespace != "" {
		return
	}
	for other, s := range w.streams {
		if other.gvr == p.gvr && other.namespace != "" {
			w.end(s)
		}
	}
}

// collect ends the streams that have not been needed for a while. The caller holds the lock.
func (w *Watcher) collect() {
	now := w.opts.Clock.Now()
	for p, s := range w.streams {
		if now.Sub(s.used) >= w.opts.Idle && !w.needed(p) {
			w.end(s)
		}
	}
	for p, r := range w.refusals {
		if !now.Before(r.until) {
			delete(w.refusals, p)
		}
	}
}

func (w *Watcher) needed(p place) bool {
	if p.namespace == "" {
		return len(w.expected[p.gvr]) > 0
	}
	for id := range w.expected[p.gvr] {
		if id.Namespace == p.namespace {
			return true
		}
	}
	return false
}

// refusedError is an answer of the target.
type refusedError struct {
	reason    string
	forbidden bool // less may be allowed; otherwise the kind cannot be watched at all
}

func (e *refusedError) Error() string { return e.reason }

// isNarrower reports whether a request for single namespaces may succeed.
func isNarrower(err error) bool {
	refused := &refusedError{}
	return errors.As(err, &refused) && refused.forbidden
}

func notWatched(p place, reason string) error {
	where := "the cluster"
	if p.namespace != "" {
		where = "namespace " + p.namespace
	}
	return fmt.Errorf("%s in %s: %s", p.gvr.GroupResource(), where, strings.Join(strings.Fields(reason), " "))
}
