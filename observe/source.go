// SPDX-License-Identifier: Apache-2.0

package observe

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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/targets"
)

// scope identifies the objects that one source watches.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string        // empty for the whole cluster
	stored    bool          // the source stores the objects that carry the owner label
	only      *Subscription // set if the source watches only the objects that one Subscription selects
}

// newStoredScope returns the scope of a source that stores the objects of a resource. An empty namespace stands for the
// whole cluster.
func newStoredScope(resource schema.GroupVersionResource, namespace string) scope {
	return scope{resource: resource, namespace: namespace, stored: true}
}

// contains reports whether the scope contains an object with the given name.
func (s scope) contains(id name) bool {
	return s.namespace == "" || s.namespace == id.namespace.Value()
}

// selectObjects sets the options that select the objects of the scope.
func (s scope) selectObjects(opts *metav1.ListOptions) {
	switch {
	case s.stored:
		opts.LabelSelector = ownership.LabelItem
	case s.only != nil:
		opts.LabelSelector = s.only.request.labels.String()
		if s.only.request.name != "" {
			opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.only.request.name).String()
		}
	}
}

// sink receives the objects of a source.
type sink interface {
	receiver
	dependent
}

// receiver receives the events of a source. The source calls setVersion with the Watcher's lock, and the other methods
// without it.
type receiver interface {
	transform(obj any) (any, error)
	put(obj any) error
	remove(obj any) error
	replace(list []any, version string) error
	setVersion(version string)
}

// dependent depends on a source. The methods are called with the Watcher's lock.
type dependent interface {
	// isNeeded reports whether the source must stay open.
	isNeeded() bool
	// reset is called when the source has ended.
	reset()
	// onRefused is called when the target refuses the watch. It returns a function that is called without the lock.
	onRefused() func()
}

// source is one watch. A reflector passes the watched objects to the sink. The Watcher's lock guards the field `used`
// and all fields below it, except the field `listed`.
type source struct {
	w     *Watcher
	scope scope
	sink  sink
	stop  context.CancelFunc
	whole bool // the source receives whole objects instead of metadata

	used    time.Time
	synced  bool          // the first list has been received
	lastErr error         // the error of the last request
	refused *refusal      // the error if the target does not allow the watch or does not serve the resource; the source has ended
	listed  int           // the number of objects on the pages of the current list so far; only the reflector's goroutine uses it
	changed chan struct{} // closed when `synced`, `trouble` or `refused` changes
}

// isLive reports whether the sink has received all changes, except for the normal delay of a watch.
func (s *source) isLive() bool {
	return s.synced && s.lastErr == nil && s.refused == nil && s.w.ctx.Err() == nil
}

// notify wakes the goroutines that wait for the source. The caller holds the lock.
func (s *source) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hasEnded reports whether the source was ended. The reflector may still deliver events to an ended source. The sink
// must ignore these events. The caller holds the lock.
func (s *source) hasEnded() bool { return s.w.sources[s.scope] != s }

// run runs the reflector until ctx ends. It uses the reflector's own backoff with a lower maximum.
func (s *source) run(ctx context.Context) {
	lister := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	var client, object any = s.w.client, &metav1.PartialObjectMetadata{}
	if s.whole {
		client, object = s.w.opts.DynamicClient, &unstructured.Unstructured{}
	}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(lister, client), object, s,
		cache.ReflectorOptions{
			Name:            "observe",
			TypeDescription: s.scope.resource.String(),
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
	// watchAnswerTimeout is how long a target may take to answer a watch request. After that time, the stored objects no
	// longer count as up to date.
	watchAnswerTimeout = time.Second
)

var (
	errNoWatch  = errors.New("the target has not answered the watch request yet")
	errNoAnswer = errors.New("the target did not answer in time")
	errTooMany  = fmt.Errorf("there are more than %d objects to watch, or more than %d MiB of them", maxObjects, maxBytes>>20)
)

func (s *source) list(ctx context.Context, opts metav1.ListOptions) (list runtime.Object, err error) {
	s.scope.selectObjects(&opts)
	held, release := targets.ReserveMemory(ctx)
	defer release()
	if s.whole {
		list, err = s.w.opts.DynamicClient.Resource(s.scope.resource).Namespace(s.scope.namespace).List(held, opts)
	} else {
		list, err = s.listMetadata(held, opts)
	}
	if err == nil {
		err = s.checkPage(opts, meta.LenList(list))
	}
	if err = s.recordAnswer(ctx, err); err != nil {
		return nil, err
	}
	return list, nil
}

// listMetadata lists the metadata of the objects. If the source does not store the objects, it removes the metadata
// that subscriptions do not need.
func (s *source) listMetadata(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := s.w.client.Resource(s.scope.resource).Namespace(s.scope.namespace).List(ctx, opts)
	if err != nil {
		return nil, err //nolint:wrapcheck // the reflector recognizes the error by its type
	}
	if !s.scope.stored {
		for i := range list.Items {
			trimMetadata(&list.Items[i])
		}
	}
	return list, nil
}

func (s *source) watch(ctx context.Context, opts metav1.ListOptions) (open apiwatch.Interface, err error) {
	s.scope.selectObjects(&opts)
	noted := make(chan struct{})
	late := time.AfterFunc(watchAnswerTimeout, func() {
		defer close(noted)
		_ = s.recordAnswer(ctx, errNoWatch)
	})
	if s.whole {
		open, err = s.w.opts.DynamicClient.Resource(s.scope.resource).Namespace(s.scope.namespace).Watch(ctx, opts)
	} else {
		open, err = s.w.client.Resource(s.scope.resource).Namespace(s.scope.namespace).Watch(ctx, opts)
	}
	if !late.Stop() {
		<-noted
	}
	if err = s.recordAnswer(ctx, err); err != nil {
		return nil, err
	}
	return open, nil
}

// checkPage returns an error if the pages of a list together contain too many objects.
func (s *source) checkPage(opts metav1.ListOptions, objects int) error {
	if opts.Continue == "" {
		s.listed = 0
	}
	if s.listed += objects; s.listed > maxObjects {
		return errTooMany
	}
	return nil
}

// recordAnswer records the result of the last request. If the target refused the request, recordAnswer ends the source.
func (s *source) recordAnswer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if isRefusal(err) {
		s.w.handleRefusal(s, err)
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !apierrors.IsResourceExpired(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		// Three errors are excluded here: they only make the reflector send another kind of request.
		if (err == nil) != (s.lastErr == nil) {
			defer s.notify()
		}
		s.lastErr = err
	}
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// The reflector must not recognize this error: it would wait and not notice that ctx has ended.
		return fmt.Errorf("watch %s: %s", s.scope.resource.GroupResource(), err.Error())
	}
	return err
}

// isRefusal reports whether repeating the request soon would lead to the same answer.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || errors.Is(err, errTooMany)
}

// Transformer returns the function that the reflector applies to each object that it receives.
func (s *source) Transformer() cache.TransformFunc { return s.sink.transform }

// Add passes a new object to the sink. The reflector calls it.
func (s *source) Add(obj any) error { return s.sink.put(obj) }

// Update passes a changed object to the sink. The reflector calls it.
func (s *source) Update(obj any) error { return s.sink.put(obj) }

// Delete tells the sink that an object was deleted, or is no longer selected. The reflector calls it.
func (s *source) Delete(obj any) error {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	return s.sink.remove(obj)
}

// Replace passes a complete list to the sink. The reflector calls it, at the beginning and after an interruption of the
// watch.
func (s *source) Replace(list []any, version string) error { return s.sink.replace(list, version) }

// Resync does nothing. The reflector does not call it, because no resync period is configured.
func (s *source) Resync() error { return nil }

// Bookmark passes the resource version of a bookmark event to the sink. The reflector calls it.
func (s *source) Bookmark(version string) error {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.sink.setVersion(version)
	return nil
}
