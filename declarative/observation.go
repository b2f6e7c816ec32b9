// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/version"
	"github.com/deployerkit/deployerkit/targets"
)

// byItem is the index of children by the UID and by the name of their item, so that an item that was created again
// finds its earlier children.
const byItem = "item"

// observation is one informer. It holds the whole objects of a place that belong to deploy items, without
// managedFields.
type observation struct {
	o        *observer
	place    place
	informer cache.SharedIndexInformer
	stopOnce sync.Once
	stopped  chan struct{} // closed to end the informer
	ended    chan struct{} // closed when the informer has ended
	live     atomic.Bool   // the last request succeeded

	used    time.Time // guarded by the observer's lock
	refused error     // written before stopped is closed

	mu      sync.Mutex
	trouble error  // error of the last request, or nil
	version string // the newest version that the handlers have received
}

func newObservation(o *observer, p place, now time.Time) *observation {
	s := &observation{o: o, place: p, used: now, stopped: make(chan struct{}), ended: make(chan struct{})}
	source := &cache.ListWatch{ListWithContextFunc: s.list, WatchFuncWithContext: s.watch}
	s.informer = cache.NewSharedIndexInformerWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, o.client), &unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{Indexers: cache.Indexers{byItem: itemsOf}, ObjectDescription: p.resource.String()},
	)
	return s
}

// stop ends the informer without waiting for it.
func (s *observation) stop() { s.stopOnce.Do(func() { close(s.stopped) }) }

// run runs the informer until ctx ends or stop is called.
func (s *observation) run(ctx context.Context) {
	defer s.o.open.Add(-1)
	defer close(s.ended)
	ctx, cancel := context.WithCancel(logr.NewContext(ctx, logr.Discard())) // errors are in the view's reason
	defer cancel()
	go func() {
		select {
		case <-s.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	if s.informer.SetTransform(reduce) != nil { // fails only if the informer already runs
		return
	}
	if _, err := s.informer.AddEventHandler(s.handler()); err != nil {
		return
	}
	s.informer.RunWithContext(ctx)
}

func (s *observation) resource() dynamic.ResourceInterface {
	resource := s.o.client.Resource(s.place.resource)
	if s.place.namespace == "" {
		return resource
	}
	return resource.Namespace(s.place.namespace)
}

// watchAnswer is how long a target may take to answer a watch before the informer no longer counts as up to date.
const watchAnswer = time.Second

func (s *observation) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	opts.LabelSelector = ownership.LabelItem
	held, release := targets.Hold(ctx)
	defer release()
	list, err := s.resource().List(held, opts)
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return list, nil
}

func (s *observation) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.LabelSelector = ownership.LabelItem
	noted := make(chan struct{})
	late := time.AfterFunc(watchAnswer, func() {
		defer close(noted)
		s.live.Store(false)
	})
	events, err := s.resource().Watch(ctx, opts)
	if !late.Stop() {
		<-noted
	}
	if err = s.note(ctx, err); err != nil {
		return nil, err
	}
	return events, nil
}

// note records how the last request ended, and ends the informer if the target refuses it.
func (s *observation) note(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return err
	case apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		s.o.refuse(s, err)
		return err
	case apierrors.IsResourceExpired(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return err // the server wants another kind of request, which the informer sends next
	}
	s.live.Store(err == nil)
	s.mu.Lock()
	s.trouble = err
	s.mu.Unlock()
	if utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err) {
		// With the original error the informer would wait and not notice that ctx ends.
		return fmt.Errorf("observe %s: %s", s.place, err.Error())
	}
	return err
}

// await waits for the first list. It returns nil when the list is there, and otherwise why it is not. fresh means that
// the informer was started just now.
func (s *observation) await(ctx context.Context, fresh bool) error {
	if s.informer.HasSynced() {
		return nil
	}
	if trouble := s.lastTrouble(); trouble != nil && !fresh { // it has had its time
		return fmt.Errorf("%s: %w", s.place, trouble)
	}
	select {
	case <-s.informer.HasSyncedChecker().Done():
		return nil
	case <-s.stopped:
		if s.refused != nil {
			return s.refused
		}
	case <-s.ended:
	case <-ctx.Done():
		if trouble := s.lastTrouble(); trouble != nil {
			return fmt.Errorf("%s: %w", s.place, trouble)
		}
		return fmt.Errorf("%s: the target did not answer in time", s.place)
	}
	return fmt.Errorf("%s: the target was just closed", s.place)
}

func (s *observation) lastTrouble() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.trouble
}

// handler triggers runs of the items whose objects change.
func (s *observation) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { s.wake(obj) },
		UpdateFunc: func(before, after any) {
			if a, b := metaOf(before), metaOf(after); a != nil && b != nil {
				if a.GetResourceVersion() == b.GetResourceVersion() {
					return
				}
				if a.GetLabels()[ownership.LabelItem] != b.GetLabels()[ownership.LabelItem] {
					s.wake(before)
				}
			}
			s.wake(after)
		},
		DeleteFunc: s.wake,
	}
}

func (s *observation) wake(obj any) {
	m := metaOf(obj)
	if m == nil {
		return
	}
	s.mu.Lock()
	if s.version == "" || version.Older(s.version, m.GetResourceVersion()) {
		s.version = m.GetResourceVersion()
	}
	s.mu.Unlock()
	s.o.changed(types.UID(m.GetLabels()[ownership.LabelItem]))
}

// reached reports whether the informer has seen all changes up to a version. It returns false if that is unknown.
func (s *observation) reached(written string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version == written || version.Older(written, s.version)
}

// get returns an object, or nil if it does not exist or belongs to no item. The object is shared, so copy it before a
// change.
func (s *observation) get(namespace, name string) *unstructured.Unstructured {
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	obj, found, err := s.informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return nil
	}
	out, _ := obj.(*unstructured.Unstructured)
	return out
}

// of returns the objects of an item.
func (s *observation) of(owner ownership.Owner) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	taken := map[types.UID]bool{}
	keys := []string{string(owner.UID), nameKey(owner)}
	if owner.Alias != "" {
		keys = append(keys, nameKey(ownership.Owner{Landscape: owner.Alias, Namespace: owner.Namespace, Name: owner.Name}))
	}
	for _, key := range keys {
		found, err := s.informer.GetIndexer().ByIndex(byItem, key)
		if err != nil {
			continue // the index exists since the informer was made
		}
		for _, obj := range found {
			if u, ok := obj.(*unstructured.Unstructured); ok && !taken[u.GetUID()] {
				taken[u.GetUID()] = true
				out = append(out, u)
			}
		}
	}
	return out
}

var errForeign = errors.New("not an object")

// itemsOf returns the keys of the index.
func itemsOf(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, errForeign
	}
	owner, ok := ownership.OwnerOf(m)
	if !ok {
		return nil, nil
	}
	return []string{string(owner.UID), nameKey(owner)}, nil
}

// nameKey returns the key for all items with the same name. A UID contains no slash.
func nameKey(owner ownership.Owner) string {
	return string(owner.Landscape) + "/" + owner.Namespace + "/" + owner.Name
}

// reduce drops what no handler needs. It may be called twice for an object, and never fails.
func reduce(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u.GetManagedFields() != nil {
		u.SetManagedFields(nil)
	}
	return obj, nil
}

func metaOf(obj any) metav1.Object {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return m
}
