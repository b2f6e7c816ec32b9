// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/targets"
)

// stream is one watch. A reflector stores the watched objects in the stream. The Watcher's lock guards the field
// `objects` and all fields below it, except the field `listed`.
type stream struct {
	w     *Watcher
	place place
	stop  context.CancelFunc
	whole bool // the stream stores whole objects

	packer packer // compresses whole objects

	objects map[name]*reduced
	index   index    // the index of whole objects
	version string   // the newest resourceVersion that was seen
	synced  bool     // the first list has been received
	trouble error    // the error of the last request
	refused *refusal // the error if the target does not allow the watch or does not serve the resource; the stream has ended
	used    time.Time
	listed  int           // the number of objects on the pages of the current list so far; only the reflector's goroutine uses it
	news    chan struct{} // closed when `synced`, `trouble` or `refused` changes
}

// live reports whether the stored objects are up to date, except for the normal delay of a watch.
func (s *stream) live() bool {
	return s.synced && s.trouble == nil && s.refused == nil && s.w.ctx.Err() == nil
}

// changed wakes the goroutines that wait for the stream. The caller holds the lock.
func (s *stream) changed() {
	close(s.news)
	s.news = make(chan struct{})
}

// run runs the reflector until ctx ends. It uses the reflector's own backoff with a lower maximum.
func (s *stream) run(ctx context.Context) {
	source := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	var client, object any = s.w.client, &metav1.PartialObjectMetadata{}
	if s.whole {
		client, object = s.w.opts.Objects, &unstructured.Unstructured{}
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, client), object, s,
		cache.ReflectorOptions{
			Name:            "drift",
			TypeDescription: s.place.gvr.String(),
			Backoff:         &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 5, Cap: 10 * time.Second},
		})
	reflector.WatchListPageSize = pageSize
	// The reflector would log each error. It gets a logger that discards all messages, because Coverage reports the
	// errors.
	reflector.RunWithContext(logr.NewContext(ctx, logr.Discard()))
}

const (
	// pageSize is the number of objects that are requested per page of a list.
	pageSize = 500
	// maxObjects is the maximum number of objects of one watch. A target that returns more objects is either malicious
	// or too large for this library.
	maxObjects = 50_000
	// watchAnswer is how long a target may take to answer a watch request. After that time, the stored objects no
	// longer count as up to date.
	watchAnswer = time.Second
)

func (s *stream) list(ctx context.Context, opts metav1.ListOptions) (list runtime.Object, err error) {
	opts.LabelSelector = ownership.LabelItem
	held, release := targets.ReserveMemory(ctx)
	defer release()
	if p := s.place; s.whole {
		list, err = s.w.opts.Objects.Resource(p.gvr).Namespace(p.namespace).List(held, opts)
	} else {
		list, err = s.w.client.Resource(p.gvr).Namespace(p.namespace).List(held, opts)
	}
	if err == nil {
		err = s.countPage(opts, meta.LenList(list))
	}
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return list, nil
}

func (s *stream) watch(ctx context.Context, opts metav1.ListOptions) (open apiwatch.Interface, err error) {
	opts.LabelSelector = ownership.LabelItem
	noted := make(chan struct{})
	late := time.AfterFunc(watchAnswer, func() {
		defer close(noted)
		_ = s.note(ctx, errNoWatch)
	})
	if p := s.place; s.whole {
		open, err = s.w.opts.Objects.Resource(p.gvr).Namespace(p.namespace).Watch(ctx, opts)
	} else {
		open, err = s.w.client.Resource(p.gvr).Namespace(p.namespace).Watch(ctx, opts)
	}
	if !late.Stop() {
		<-noted
	}
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return open, nil
}

// countPage returns an error if the pages of a list together contain too many objects.
func (s *stream) countPage(opts metav1.ListOptions, objects int) error {
	if opts.Continue == "" {
		s.listed = 0
	}
	if s.listed += objects; s.listed > maxObjects {
		return errTooMany
	}
	return nil
}

// note records the result of the last request. If the target refused the request, note ends the stream.
func (s *stream) note(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if isRefusal(err) {
		s.w.mu.Lock()
		losers := s.w.refuse(s, err)
		s.w.mu.Unlock()
		s.w.tellLoss(losers)
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		// Three errors are excluded here: they only make the reflector send another kind of request.
		if (err == nil) != (s.trouble == nil) {
			defer s.changed()
		}
		s.trouble = err
	}
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// The reflector must not recognize this error: it would wait and not notice that ctx has ended.
		return fmt.Errorf("watch %s: %s", s.place.gvr.GroupResource(), err.Error())
	}
	return err
}

// isRefusal reports whether repeating the request soon would lead to the same answer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// Transformer returns the function that the reflector applies to each object that it receives.
func (s *stream) Transformer() cache.TransformFunc { return s.reduce }

// reduce is the transform function of the stream.
func (s *stream) reduce(obj any) (any, error) {
	if whole, ok := obj.(*unstructured.Unstructured); ok && s.whole {
		return reduceWhole(whole, &s.packer), nil
	}
	return reduce(obj)
}

// Add stores a new object. The reflector calls it.
func (s *stream) Add(obj any) error { return s.put(obj) }

// Update stores a changed object. The reflector calls it.
func (s *stream) Update(obj any) error { return s.put(obj) }

// Resync does nothing. The reflector does not call it, because no resync period is configured.
func (s *stream) Resync() error { return nil }

var (
	errForeign = errors.New("not an object")
	errNoWatch = errors.New("the target has not answered the watch request yet")
	errSilent  = errors.New("the target did not answer in time")
	errTooMany = fmt.Errorf("the target has more than %d objects with the label deployerkit.dev/item, or more than %d MiB of them", maxObjects, maxBytes>>20)
)

func (s *stream) put(obj any) error {
	r, err := s.reducedOf(obj)
	if err != nil {
		return err
	}
	id, o := r.name, Object{s.place.gvr, r.full()}
	s.w.mu.Lock()
	if s.ended() {
		s.w.mu.Unlock()
		return nil
	}
	before := s.objects[id]
	if before == nil && len(s.objects) >= maxObjects || s.index.bytes+r.size() > maxBytes {
		losers := s.w.refuse(s, errTooMany)
		s.w.mu.Unlock()
		s.w.tellLoss(losers)
		return errTooMany
	}
	s.set(id, r)
	s.version = r.version
	events, stranger := s.w.judge(nil, s.place.gvr, id, false), s.w.unknownTo(r)
	s.w.mu.Unlock()
	s.w.emit(events)
	s.w.tellUnknown(stranger)
	if before != nil && before.item != r.item {
		s.tell(before.owner(), o)
	}
	s.tell(r.owner(), o)
	return nil
}

// set stores an object, or removes it if r is nil. The caller holds the lock.
func (s *stream) set(id name, r *reduced) {
	if before := s.objects[id]; before != nil {
		s.index.remove(before)
	}
	if r == nil {
		delete(s.objects, id)
		return
	}
	s.objects[id] = r
	s.index.add(r)
}

// Delete removes an object. The reflector calls it when the object was deleted or lost its owner label.
func (s *stream) Delete(obj any) error {
	r, err := s.reducedOf(obj)
	if err != nil {
		return err
	}
	id, o := r.name, Object{s.place.gvr, r.full()}
	s.w.mu.Lock()
	if s.ended() {
		s.w.mu.Unlock()
		return nil
	}
	var ignoring types.UID
	if before := s.objects[id]; before != nil {
		ignoring = s.w.ignoredBy(before)
	}
	s.set(id, nil)
	s.version = r.version
	var events []Event
	if e := s.w.expected[s.place.gvr][id]; e != nil && !version.Older(r.version, e.version) {
		events = s.w.judge(nil, s.place.gvr, id, true)
	}
	s.w.mu.Unlock()
	s.w.emit(events)
	s.w.tellUnknown(ignoring)
	s.tell(r.owner(), o)
	return nil
}

// Replace replaces all objects. The reflector calls it with a complete list, at the beginning and after an interruption
// of the watch.
func (s *stream) Replace(list []any, listed string) error {
	objects, listedIndex := make(map[name]*reduced, len(list)), index{}
	for _, obj := range list {
		if r, err := s.reducedOf(obj); err == nil {
			objects[r.name] = r
			listedIndex.add(r)
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
	if listedIndex.bytes > maxBytes {
		losers := s.w.refuse(s, errTooMany)
		s.w.mu.Unlock()
		s.w.tellLoss(losers)
		return errTooMany
	}
	before, isFirst := s.objects, !s.synced
	s.objects, s.index, s.version, s.synced = objects, listedIndex, listed, true
	s.w.widened(s.place)
	s.changed()
	events := s.w.judgeAll(s.place)
	strangers := s.w.replaced(before, objects, isFirst)
	s.w.mu.Unlock()
	s.w.emit(events)
	s.w.tellUnknown(strangers...)
	s.tellDifferences(before, objects)
	return nil
}

// tellDifferences compares two lists, and notifies the items whose objects differ.
func (s *stream) tellDifferences(before, now map[name]*reduced) {
	for id, r := range before {
		if other := now[id]; other == nil || other.item != r.item {
			s.tell(r.owner(), Object{s.place.gvr, id.full()})
		}
	}
	for id, r := range now {
		if other := before[id]; other == nil || other.version != r.version {
			s.tell(r.owner(), Object{s.place.gvr, id.full()})
		}
	}
}

// Bookmark stores the resource version of a bookmark event. The reflector calls it.
func (s *stream) Bookmark(version string) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.version = version
	return nil
}

// ended reports whether the stream was ended. The reflector may still deliver events to an ended stream. The stream
// must ignore these events. The caller holds the lock.
func (s *stream) ended() bool { return s.w.streams[s.place] != s }

func (s *stream) reducedOf(obj any) (*reduced, error) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	out, _ := s.reduce(obj)
	r, ok := out.(*reduced)
	if !ok {
		return nil, errForeign
	}
	return r, nil
}
