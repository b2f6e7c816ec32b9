// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/targets"
)

// stream is one watch, a reflector that fills objects. The Watcher's lock guards all fields below.
type stream struct {
	w     *Watcher
	place place
	stop  context.CancelFunc

	objects map[types.NamespacedName]*reduced
	version string // the newest resourceVersion seen
	synced  bool   // the first list has been received
	trouble error  // the error of the last request
	refused error  // the error if the target does not allow or know this watch; the stream has ended
	used    time.Time
	listed  int           // the number of objects on the pages of the current list; for the reflector only
	news    chan struct{} // closed at the next change of synced, trouble or refused
}

// live reports whether the content of objects was true a moment ago.
func (s *stream) live() bool {
	return s.synced && s.trouble == nil && s.refused == nil && s.w.ctx.Err() == nil
}

// changed wakes the goroutines that wait for the stream. The caller holds the lock.
func (s *stream) changed() {
	close(s.news)
	s.news = make(chan struct{})
}

// run runs until ctx ends. It uses the reflector's own backoff, with a lower maximum.
func (s *stream) run(ctx context.Context) {
	source := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, s.w.client), &metav1.PartialObjectMetadata{}, s,
		cache.ReflectorOptions{
			Name:            "drift",
			TypeDescription: s.place.gvr.String(),
			Backoff:         &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 5, Cap: 10 * time.Second},
		})
	reflector.WatchListPageSize = pageSize
	// Errors are part of the coverage. The reflector would log each of them.
	reflector.RunWithContext(logr.NewContext(ctx, logr.Discard()))
}

const (
	// pageSize is the number of objects on a page of a list.
	pageSize = 500
	// maxObjects is the number of objects that one watch may return. A target with more is hostile, or needs another
	// tool.
	maxObjects = 50_000
	// watchAnswer is how long a target may take to answer a watch before its objects are no longer trusted.
	watchAnswer = time.Second
)

func (s *stream) resource() metadata.ResourceInterface {
	resource := s.w.client.Resource(s.place.gvr)
	if s.place.namespace == "" {
		return resource
	}
	return resource.Namespace(s.place.namespace)
}

func (s *stream) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	opts.LabelSelector = ownership.LabelItem
	held, release := targets.Hold(ctx)
	defer release()
	list, err := s.resource().List(held, opts)
	if err == nil {
		err = s.countPage(opts, len(list.Items))
	}
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return list, nil
}

func (s *stream) watch(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
	opts.LabelSelector = ownership.LabelItem
	noted := make(chan struct{})
	late := time.AfterFunc(watchAnswer, func() {
		defer close(noted)
		_ = s.note(ctx, errNoWatch)
	})
	open, err := s.resource().Watch(ctx, opts)
	if !late.Stop() {
		<-noted
	}
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return open, nil
}

// countPage limits the number of objects on all pages of a list.
func (s *stream) countPage(opts metav1.ListOptions, objects int) error {
	if opts.Continue == "" {
		s.listed = 0
	}
	if s.listed += objects; s.listed > maxObjects {
		return errTooMany
	}
	return nil
}

// note records the result of the last request, and ends the stream if it is refused.
func (s *stream) note(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if isRefusal(err) {
		s.w.refuse(s, err)
		return err
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		// With these three errors, a server asks for another kind of request, which the reflector sends.
		if (err == nil) != (s.trouble == nil) {
			defer s.changed()
		}
		s.trouble = err
	}
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// The reflector would wait here, and not notice that ctx ends.
		return fmt.Errorf("watch %s: %s", s.place.gvr.GroupResource(), err.Error())
	}
	return err
}

// isRefusal reports whether the same request would soon get the same answer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// Transformer makes the reflector reduce the objects while it collects them.
func (s *stream) Transformer() cache.TransformFunc { return reduce }

// Add is called by the reflector.
func (s *stream) Add(obj any) error { return s.put(obj) }

// Update is called by the reflector.
func (s *stream) Update(obj any) error { return s.put(obj) }

// Resync is called by the reflector, but no resync is configured.
func (s *stream) Resync() error { return nil }

var (
	errForeign = errors.New("not an object")
	errNoWatch = errors.New("the target has not answered the watch yet")
	errTooMany = fmt.Errorf("the target has more than %d objects with the label of the library", maxObjects)
)

func (s *stream) put(obj any) error {
	r, err := reducedOf(obj)
	if err != nil {
		return err
	}
	id, o := r.id(), Object{s.place.gvr, r.id()}
	s.w.mu.Lock()
	if s.ended() {
		s.w.mu.Unlock()
		return nil
	}
	before := s.objects[id]
	if before == nil && len(s.objects) >= maxObjects {
		s.w.refuse(s, errTooMany)
		s.w.mu.Unlock()
		return errTooMany
	}
	s.objects[id] = r
	s.version = r.version
	events := s.w.judge(nil, o, false)
	s.w.mu.Unlock()
	s.w.emit(events)
	if before != nil && before.item != r.item {
		s.w.tell(before.owner(), o)
	}
	s.w.tell(r.owner(), o)
	return nil
}

// Delete is called by the reflector when an object was deleted, or lost the label.
func (s *stream) Delete(obj any) error {
	r, err := reducedOf(obj)
	if err != nil {
		return err
	}
	id, o := r.id(), Object{s.place.gvr, r.id()}
	s.w.mu.Lock()
	if s.ended() {
		s.w.mu.Unlock()
		return nil
	}
	delete(s.objects, id)
	s.version = r.version
	var events []Event
	if e := s.w.expected[s.place.gvr][id]; e != nil && !version.Older(r.version, e.version) {
		events = s.w.judge(nil, o, true)
	}
	s.w.mu.Unlock()
	s.w.emit(events)
	s.w.tell(r.owner(), o)
	return nil
}

// Replace is called by the reflector with the whole list, at the beginning and after it lost the connection.
func (s *stream) Replace(list []any, listed string) error {
	objects := make(map[types.NamespacedName]*reduced, len(list))
	for _, obj := range list {
		if r, err := reducedOf(obj); err == nil {
			objects[r.id()] = r
		}
	}
	s.w.mu.Lock()
	if s.ended() {
		s.w.mu.Unlock()
		return nil
	}
	if version.Older(listed, s.version) {
		s.w.rewound(s.place)
	}
	s.objects, s.version, s.synced = objects, listed, true
	s.w.widened(s.place)
	s.changed()
	events := s.w.judgeAll(s.place.gvr, s.place.namespace)
	s.w.mu.Unlock()
	s.w.emit(events)
	return nil
}

// Bookmark is called by the reflector with the current version of the server.
func (s *stream) Bookmark(version string) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.version = version
	return nil
}

// ended reports whether the stream was stopped. A stopped stream may still deliver an event. The caller holds the
// lock.
func (s *stream) ended() bool { return s.w.streams[s.place] != s }

func reducedOf(obj any) (*reduced, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	out, _ := reduce(obj)
	r, ok := out.(*reduced)
	if !ok {
		return nil, errForeign
	}
	return r, nil
}
