// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Scope describes how much of a resource is watched.
type Scope string

const (
	// Cluster means that all objects of the resource are watched.
	Cluster Scope = "Cluster"
	// Namespaces means that the objects in the namespaces of Coverage.Namespaces are watched.
	Namespaces Scope = "Namespaces"
	// None means that nothing is watched.
	None Scope = "None"
)

// Coverage is the result of Watch: it describes which objects of a resource are watched.
type Coverage struct {
	Scope Scope
	// Namespaces lists the watched namespaces, sorted. It is empty unless Scope is Namespaces.
	Namespaces []string
	// Missing lists the requested namespaces that are not watched, sorted.
	Missing []string
	// Reason explains in one line why the whole cluster is not watched. It is empty if Scope is Cluster.
	Reason string
	// NotServed means that nothing is watched because the target did not serve the resource. This may change at any
	// time, so call Watch again, at the latest when an object of the resource exists (see Watcher.Serves).
	NotServed bool
	// Refused means that the target does not allow the watches that are missing, or has too many objects of the
	// resource. Watch repeats such a request after ten minutes.
	Refused bool
}

// Covers reports whether the watches detect drift of objects in the given namespace. An empty namespace stands for
// cluster-scoped objects.
func (c Coverage) Covers(namespace string) bool {
	return c.Scope == Cluster || c.Scope == Namespaces && slices.Contains(c.Namespaces, namespace)
}

// Complete reports whether the watches detect drift of all requested objects.
func (c Coverage) Complete() bool {
	return c.Scope == Cluster || c.Scope == Namespaces && len(c.Missing) == 0
}

// refusal is the error if the target refused a watch. As long as a refusal is stored, the request is not repeated.
type refusal struct {
	reason    string
	forbidden bool // a smaller scope may be allowed; if false, the resource cannot be watched at all
	missing   bool // the target did not serve the resource
	until     time.Time
}

func (r *refusal) Error() string { return r.reason }

const (
	// retryRefused is how long the watcher waits before it repeats a request that the target refused.
	retryRefused = 10 * time.Minute
	// retryMissing is how long the watcher waits before it repeats a request for a resource that the target did not
	// serve. The time is short because items install CustomResourceDefinitions.
	retryMissing = 10 * time.Second
)

// Watch ensures that a resource is watched, and waits for the first list of its objects. It watches the whole cluster
// if the target allows this. Otherwise it watches each of the given namespaces that the target allows. If the resource
// is already watched, Watch sends no request. Pass the namespaces in which the item has objects of the resource, or
// none if the resource is cluster-scoped.
//
// Watch returns an error only if ctx ends. If the resource or a namespace cannot be watched, the Coverage contains the
// namespaces that are not watched and the reason. If the target does not answer in time, the attempts continue in the
// background, and the next call returns their result.
func (w *Watcher) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespaces ...string) (Coverage, error) {
	waiting, cancel := context.WithTimeout(ctx, w.opts.SyncTimeout)
	defer cancel()
	whole := w.open(place{gvr: gvr})
	reason := whole.await(waiting)
	if reason == nil {
		return Coverage{Scope: Cluster}, ctx.Err()
	}
	namespaces = slices.Sorted(maps.Keys(sets.New(namespaces...).Delete("")))
	none := Coverage{Scope: None, Missing: namespaces, Reason: reason.Error()}
	refused, ok := errors.AsType[*refusal](reason)
	if !ok || !refused.forbidden || len(namespaces) == 0 {
		none.NotServed, none.Refused = ok && refused.missing, ok && !refused.missing
		return none, ctx.Err()
	}
	streams := make([]opening, 0, len(namespaces))
	for _, namespace := range namespaces {
		streams = append(streams, w.open(place{gvr, namespace}))
	}
	c := Coverage{Scope: Namespaces, Reason: reason.Error(), Refused: true}
	for i, o := range streams {
		if err := o.await(waiting); err != nil {
			c.Missing, c.Reason = append(c.Missing, namespaces[i]), err.Error()
			refused, ok := errors.AsType[*refusal](err)
			c.Refused = c.Refused && ok && !refused.missing
			continue
		}
		c.Namespaces = append(c.Namespaces, namespaces[i])
	}
	if len(c.Namespaces) == 0 {
		c.Scope = None
	}
	c.Refused = c.Refused && len(c.Missing) > 0
	return c, ctx.Err()
}

// Serves tells the Watcher that the target serves a resource now, because an object of the resource was read or written.
// If the target refused a watch because it did not serve the resource, the next call of Watch repeats the request.
func (w *Watcher) Serves(gvr schema.GroupVersionResource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.refusals, func(p place, r *refusal) bool { return p.gvr == gvr && r.missing })
}

// opening is the result of Watcher.open: a stream, or the reason why there is no stream.
type opening struct {
	stream *stream
	fresh  bool // this call of Watcher.open started the stream, not an earlier call
	err    error
}

// open returns the existing stream for a resource and its namespace, or starts one.
func (w *Watcher) open(p place) opening {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.opts.Clock.Now()
	if s := w.streams[p]; s != nil {
		s.used = now
		return opening{stream: s}
	}
	if r := w.refusals[p]; r != nil && now.Before(r.until) {
		return opening{err: r}
	}
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
		w: w, place: p, stop: stop, used: now, whole: w.whole[p.gvr],
		objects: map[name]*reduced{}, news: make(chan struct{}),
	}
	w.streams[p] = s
	w.running.Go(func() {
		defer w.opts.Limit.give()
		defer w.ended(s)
		s.run(ctx)
	})
	return opening{stream: s, fresh: true}
}

// await waits until the objects of the stream are up to date, and returns nil. If this does not happen, await returns
// the reason.
func (o opening) await(ctx context.Context) error {
	if o.stream == nil {
		return o.err
	}
	s := o.stream
	for {
		s.w.mu.Lock()
		live, refused, trouble, ended, news := s.live(), s.refused, s.trouble, s.ended(), s.news
		s.w.mu.Unlock()
		switch {
		case live:
			return nil
		case refused != nil:
			return refused
		case trouble != nil && !o.fresh: // a stream that was started by an earlier call has had enough time
			return notWatched(s.place, trouble.Error())
		case ended:
			return notWatched(s.place, "the watch has ended")
		}
		select {
		case <-news:
		case <-s.w.ctx.Done():
			return notWatched(s.place, "the watcher has ended")
		case <-ctx.Done():
			return notWatched(s.place, cmp.Or(trouble, errSilent).Error())
		}
	}
}

// refuse ends a stream that the target does not allow, and stores the refusal. It returns the items that lose the watch,
// for tellLoss. The caller holds the lock.
func (w *Watcher) refuse(s *stream, err error) (losers sets.Set[types.UID]) {
	rest := retryRefused
	if apierrors.IsNotFound(err) {
		rest = retryMissing
	}
	reason := notWatched(s.place, err.Error()).Error()
	s.refused = &refusal{
		reason: reason, forbidden: apierrors.IsForbidden(err), missing: apierrors.IsNotFound(err), until: w.opts.Clock.Now().Add(rest),
	}
	w.refusals[s.place] = s.refused
	if s.synced {
		losers = w.itemsOf(s.place)
	}
	w.end(s)
	return losers
}

// itemsOf returns the items that expect an object in a place. The caller holds the lock.
func (w *Watcher) itemsOf(p place) sets.Set[types.UID] {
	items := sets.New[types.UID]()
	for id, e := range w.expected[p.gvr] {
		if p.contains(id) {
			items.Insert(e.plan.item)
		}
	}
	return items
}

// end stops a stream and discards its objects. The caller holds the lock.
func (w *Watcher) end(s *stream) {
	s.stop()
	s.objects, s.index, s.synced = nil, index{}, false
	delete(w.streams, s.place)
	s.changed()
}

// ended removes a stream after its goroutine has returned.
func (w *Watcher) ended(s *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams[s.place] == s {
		w.end(s)
	}
	s.stop()
}

// covering returns the stream that watches a namespace, or nil. It returns the stream of the whole cluster only if that
// stream has received its first list. The caller holds the lock.
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

// widened ends the streams of single namespaces, because the stream of the whole cluster replaces them now. The caller
// holds the lock.
func (w *Watcher) widened(p place) {
	for other, s := range w.streams {
		if p.namespace == "" && other.gvr == p.gvr && other.namespace != "" {
			w.end(s)
		}
	}
}

// collect ends the streams that no item has needed for at least the time Options.Idle. It also removes expired
// refusals. The caller holds the lock.
func (w *Watcher) collect() {
	now := w.opts.Clock.Now()
	for _, s := range w.streams {
		if now.Sub(s.used) >= w.opts.Idle && !s.needed() {
			w.end(s)
		}
	}
	maps.DeleteFunc(w.refusals, func(_ place, r *refusal) bool { return !now.Before(r.until) })
}

// needed reports whether the stream must stay open. This is the case if an item expects an object that the stream
// watches (see Watcher.Expect). A stream of whole objects also stays open if it watches the whole cluster or has stored
// any object, because ObjectsOf also returns objects that no item expects.
func (s *stream) needed() bool {
	p := s.place
	if s.whole && (p.namespace == "" || len(s.objects) > 0) {
		return true
	}
	for id := range s.w.expected[p.gvr] {
		if p.contains(id) {
			return true
		}
	}
	return false
}

func notWatched(p place, reason string) error {
	where := "the cluster"
	if p.namespace != "" {
		where = "namespace " + p.namespace
	}
	return fmt.Errorf("%s in %s: %s", p.gvr.GroupResource(), where, strings.Join(strings.Fields(reason), " "))
}
