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

// These are the limits of the watches of kinds.
const (
	maxKindWatches = 500
	maxKindObjects = 50_000
	kindPageSize   = 500
	kindRetry      = 10 * time.Minute // after a refusal
)

// kinds are the watches that Followers share. There is one for each kind, on all of its objects.
type kinds struct {
	clock clock.Clock
	run   func(at *Cluster, f func(context.Context)) bool // in a goroutine, as long as the cluster is open

	mu      sync.Mutex
	watches map[kindPlace]*kindWatch
	refused map[kindPlace]time.Time // until when a watch is not tried again
}

func newKinds(clk clock.Clock, run func(*Cluster, func(context.Context)) bool) *kinds {
	return &kinds{clock: clk, run: run, watches: map[kindPlace]*kindWatch{}, refused: map[kindPlace]time.Time{}}
}

// kindPlace is what one watch shows. An empty namespace stands for all namespaces.
type kindPlace struct {
	cluster   *Cluster
	resource  schema.GroupVersionResource
	namespace string
}

// join finds a watch for a follower, on the whole cluster or, where that is refused, on the namespace. It reports
// whether there is one.
func (k *kinds) join(f *Follower) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	whole := kindPlace{cluster: f.sight.cluster, resource: f.sight.resource}
	w := k.open(whole)
	if w == nil && f.sight.namespace != "" {
		whole.namespace = f.sight.namespace
		w = k.open(whole)
	}
	f.serve(w)
	if w != nil {
		w.followers[f] = true
	}
	return w != nil
}

// open returns the watch of a place, or starts it. It returns nil if the watch was refused. The caller holds the
// lock.
func (k *kinds) open(place kindPlace) *kindWatch {
	if w := k.watches[place]; w != nil {
		return w
	}
	now := k.clock.Now()
	maps.DeleteFunc(k.refused, func(_ kindPlace, until time.Time) bool { return !now.Before(until) })
	if _, refused := k.refused[place]; refused || len(k.watches) >= maxKindWatches {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background()) // until the last follower leaves, or the cluster is closed
	w := &kindWatch{kinds: k, place: place, followers: map[*Follower]bool{}, stop: stop}
	if !k.run(place.cluster, func(open context.Context) { w.run(ctx, open) }) {
		stop()
		return nil
	}
	k.watches[place] = w
	return w
}

// leave removes a follower, and ends the watch if it was the last one.
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

// kindWatch is the watch of one place. It keeps no objects, but passes each event to its followers.
type kindWatch struct {
	kinds *kinds
	place kindPlace
	stop  context.CancelFunc

	synced atomic.Bool // whether there was a list
	open   atomic.Bool // whether the server has answered the watch
	listed int         // the number of objects in the list that is being read

	followers map[*Follower]bool // guarded by kinds
}

// live reports whether followers get each change.
func (w *kindWatch) live() bool { return w.synced.Load() && w.open.Load() }

// run watches until ctx ends, or open, which ends with the cluster.
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

// ended removes a watch that no longer runs.
func (w *kindWatch) ended() {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	w.kinds.close(w)
}

func (w *kindWatch) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	w.open.Store(false)
	held, release := targets.Hold(ctx)
	defer release()
	list, err := w.place.cluster.metadata.Resource(w.place.resource).Namespace(w.place.namespace).List(held, opts)
	if err != nil {
		return nil, w.failed(ctx, err)
	}
	if opts.Continue == "" {
		w.listed = 0
	}
	if w.listed += len(list.Items); w.listed > maxKindObjects {
		w.refuse()
		return nil, fmt.Errorf("more than %d objects", maxKindObjects)
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

// reduceMetadata removes what followers do not use.
func reduceMetadata(obj *metav1.PartialObjectMetadata) {
	obj.ObjectMeta = metav1.ObjectMeta{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion, Labels: obj.Labels,
		Annotations: bookmarkOf(obj),
	}
}

// bookmarkOf returns the annotation that marks the end of a list for the reflector.
func bookmarkOf(obj *metav1.PartialObjectMetadata) map[string]string {
	if value, found := obj.Annotations[metav1.InitialEventsAnnotationKey]; found {
		return map[string]string{metav1.InitialEventsAnnotationKey: value}
	}
	return nil
}

// failed ends the watch if the server refuses it, because the same request would soon get the same answer.
func (w *kindWatch) failed(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		w.refuse()
	case !apierrors.IsResourceExpired(err) && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		// The reflector handles these three. For some of the others it would wait and not notice the end of ctx.
		return fmt.Errorf("watch %s: %s", w.place.resource.GroupResource(), err.Error())
	}
	return err
}

// refuse ends the watch, and makes its followers find another way.
func (w *kindWatch) refuse() {
	k := w.kinds
	k.mu.Lock()
	k.refused[w.place] = k.clock.Now().Add(kindRetry)
	k.close(w)
	followers := slices.Collect(maps.Keys(w.followers))
	clear(w.followers)
	k.mu.Unlock()
	for _, f := range followers {
		f.join()
	}
}

// all returns the followers.
func (w *kindWatch) all() []*Follower {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	return slices.Collect(maps.Keys(w.followers))
}

// Add is called by the reflector.
func (w *kindWatch) Add(obj any) error { return w.changed(obj, false) }

// Update is called by the reflector.
func (w *kindWatch) Update(obj any) error { return w.changed(obj, false) }

// Delete is called by the reflector.
func (w *kindWatch) Delete(obj any) error { return w.changed(obj, true) }

// Resync is called by the reflector, but no resync is configured.
func (w *kindWatch) Resync() error { return nil }

func (w *kindWatch) changed(obj any, gone bool) error {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	live, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("%T is no metadata", obj)
	}
	for _, f := range w.all() {
		f.saw(live, gone)
	}
	return nil
}

// Replace is called by the reflector with a complete list.
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
