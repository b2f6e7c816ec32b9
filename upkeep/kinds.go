// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/targets"
)

// These constants limit the shared watches.
const (
	maxKindWatches = 500
	maxKindObjects = 50_000
	kindPageSize   = 500
	kindRetry      = 10 * time.Minute // how long to wait before a refused watch is tried again
	// kindMissingRetry is how long to wait before a watch is tried again if the target did not serve the kind
	kindMissingRetry = 10 * time.Second
)

// kinds contains the watches that Followers share. Each of these watches covers all objects of one kind, in a cluster
// or in a namespace.
type kinds struct {
	clock clock.Clock
	run   func(at *Cluster, f func(context.Context)) bool // runs f in a goroutine as long as the cluster is open

	mu      sync.Mutex
	watches map[kindPlace]*kindWatch
	refused map[kindPlace]time.Time // the time at which a refused watch may be tried again
}

// kindPlace identifies the objects that one watch covers. An empty namespace stands for all namespaces.
type kindPlace struct {
	cluster   *Cluster
	resource  schema.GroupVersionResource
	namespace string
}

// join adds a follower to a watch of the whole cluster or, if such a watch is not possible, to a watch of the
// namespace that the follower selects. It returns false if neither is possible.
func (k *kinds) join(f *Follower) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	whole := kindPlace{cluster: f.sight.cluster, resource: f.sight.resource}
	w := k.open(whole)
	if w == nil && f.sight.namespace != "" {
		whole.namespace = f.sight.namespace
		w = k.open(whole)
	}
	f.watch.Store(w)
	if w != nil {
		w.followers[f] = true
	}
	return w != nil
}

// open returns the watch for a place, and starts it if necessary. It returns nil if the target has refused this watch.
// The caller holds the lock.
func (k *kinds) open(place kindPlace) *kindWatch {
	if w := k.watches[place]; w != nil {
		return w
	}
	now := k.clock.Now()
	maps.DeleteFunc(k.refused, func(_ kindPlace, until time.Time) bool { return !now.Before(until) })
	if _, refused := k.refused[place]; refused || len(k.watches) >= maxKindWatches {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background()) // ends when the last follower leaves or the cluster is closed
	w := &kindWatch{kinds: k, place: place, followers: map[*Follower]bool{}, stop: stop}
	if !k.run(place.cluster, func(open context.Context) { w.run(ctx, open) }) {
		stop()
		return nil
	}
	k.watches[place] = w
	return w
}

// leave removes a follower from a watch. If that was the last follower, it ends the watch.
func (k *kinds) leave(f *Follower, w *kindWatch) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(w.followers, f); len(w.followers) == 0 {
		k.close(w)
	}
}

// close ends a watch. The caller holds the lock.
func (k *kinds) close(w *kindWatch) {
	w.open.Store(false)
	w.stop()
	if k.watches[w.place] == w {
		delete(k.watches, w.place)
	}
}

// kindWatch is the watch for one place. It stores no objects but passes each event to its followers.
type kindWatch struct {
	kinds *kinds
	place kindPlace
	stop  context.CancelFunc

	synced atomic.Bool // a complete list was received
	open   atomic.Bool // the server has answered the watch request
	listed int         // the number of objects so far in the list that is being read

	followers map[*Follower]bool // guarded by the lock of kinds
}

// live reports whether the watch works, so that its followers receive all changes.
func (w *kindWatch) live() bool { return w.synced.Load() && w.open.Load() }

// run runs the watch until one of the two contexts ends. The context `ctx` ends when the watch is stopped, and the
// context `open` ends when the cluster is closed.
func (w *kindWatch) run(ctx, open context.Context) {
	defer context.AfterFunc(open, w.stop)()
	defer w.ended()
	source := &cache.ListWatch{ListWithContextFunc: w.list, WatchFuncWithContext: w.watch}
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(source, w.place.cluster.metadata), &metav1.PartialObjectMetadata{}, w,
		cache.ReflectorOptions{
			Name: "references", TypeDescription: w.place.resource.String(),
			Backoff: &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 5, Cap: 10 * time.Second},
		})
	reflector.WatchListPageSize = kindPageSize
	reflector.RunWithContext(logr.NewContext(ctx, logr.Discard()))
}

// ended removes a watch that has stopped running.
func (w *kindWatch) ended() {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	w.kinds.close(w)
}

func (w *kindWatch) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	w.open.Store(false)
	held, release := targets.ReserveMemory(ctx)
	defer release()
	list, err := w.place.cluster.metadata.Resource(w.place.resource).Namespace(w.place.namespace).List(held, opts)
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	if opts.Continue == "" {
		w.listed = 0
	}
	if w.listed += len(list.Items); w.listed > maxKindObjects {
		w.refuse(kindRetry)
		return nil, fmt.Errorf("too many objects to watch: there are more than %d", maxKindObjects)
	}
	for i := range list.Items {
		reduceMetadata(&list.Items[i])
	}
	return list, nil
}

func (w *kindWatch) watch(ctx context.Context, opts metav1.ListOptions) (apiwatch.Interface, error) {
	w.open.Store(false)
	open, err := w.place.cluster.metadata.Resource(w.place.resource).Namespace(w.place.namespace).Watch(ctx, opts)
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	w.open.Store(true)
	return open, nil
}

// reduceMetadata removes the metadata that followers do not use.
func reduceMetadata(obj *metav1.PartialObjectMetadata) {
	obj.ObjectMeta = metav1.ObjectMeta{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion, Labels: obj.Labels,
	}
}

// failed converts an error of a request to the error that the reflector receives. If the server refuses the watch,
// failed also stops the watch, because the server would refuse it again.
func (w *kindWatch) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
	case apierrors.IsNotFound(err):
		w.refuse(kindMissingRetry)
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err):
		w.refuse(kindRetry)
	case !apierrors.IsResourceExpired(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		// The reflector handles the three errors above itself. After some other errors, it would wait and not notice
		// that ctx has ended. It does not recognize the new error, because that error has no type.
		return fmt.Errorf("watch %s: %s", w.place.resource.GroupResource(), err.Error())
	}
	return err
}

// refuse ends the watch because the target does not allow it, or does not serve the kind. The followers then use a watch
// of one namespace, or poll. The watch is not tried again for the given time.
func (w *kindWatch) refuse(rest time.Duration) {
	k := w.kinds
	k.mu.Lock()
	k.refused[w.place] = k.clock.Now().Add(rest)
	k.close(w)
	followers := slices.Collect(maps.Keys(w.followers))
	clear(w.followers)
	k.mu.Unlock()
	for _, f := range followers {
		f.join()
	}
}

// all returns the followers of the watch.
func (w *kindWatch) all() []*Follower {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	return slices.Collect(maps.Keys(w.followers))
}

// Add passes a new object to the followers. The reflector calls it.
func (w *kindWatch) Add(obj any) error { return w.changed(obj, false) }

// Update passes a changed object to the followers. The reflector calls it.
func (w *kindWatch) Update(obj any) error { return w.changed(obj, false) }

// Delete passes a deleted object to the followers. The reflector calls it.
func (w *kindWatch) Delete(obj any) error { return w.changed(obj, true) }

// Resync does nothing. The reflector does not call it, because no resync period is configured.
func (w *kindWatch) Resync() error { return nil }

func (w *kindWatch) changed(obj any, gone bool) error {
	live, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("%T is not a PartialObjectMetadata", obj)
	}
	for _, f := range w.all() {
		f.saw(live, gone)
	}
	return nil
}

// Replace passes a complete list to the followers. The reflector calls it.
func (w *kindWatch) Replace(list []any, version string) error {
	objects := make([]*metav1.PartialObjectMetadata, 0, len(list))
	for _, obj := range list {
		if live, ok := obj.(*metav1.PartialObjectMetadata); ok {
			objects = append(objects, live)
		}
	}
	for _, f := range w.all() {
		f.sawAll(objects, version)
	}
	w.synced.Store(true)
	return nil
}
