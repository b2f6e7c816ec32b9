// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fanOut passes the events of a source to Subscriptions. It stores no objects. The Watcher's lock guards it.
type fanOut struct {
	*source

	subscriptions map[*Subscription]bool
}

// addToSource adds a Subscription to the source of the first of its scopes that can be watched, and returns the source.
// It returns nil if none can be watched. The result `missed` is true if the source has received its first list already.
func (w *Watcher) addToSource(s *Subscription) (joined *source, missed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.source.Store(nil)
	for _, in := range s.scopes {
		o := w.open(in, w.opts.SubscriptionLimit, func(src *source) sink {
			return &fanOut{source: src, subscriptions: map[*Subscription]bool{}}
		})
		if o.source == nil {
			continue
		}
		o.source.sink.(*fanOut).subscriptions[s] = true
		s.source.Store(o.source)
		return o.source, o.source.synced
	}
	return nil, false
}

// removeFromSource removes a Subscription from a source. If that was the last Subscription, it ends the source.
func (w *Watcher) removeFromSource(s *Subscription, from *source) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := from.sink.(*fanOut)
	if delete(f.subscriptions, s); !f.isNeeded() && !from.hasEnded() {
		w.stopSource(from)
	}
}

// list returns the subscriptions of the source.
func (f *fanOut) list() []*Subscription {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	return slices.Collect(maps.Keys(f.subscriptions))
}

// transform removes the metadata that subscriptions do not need.
func (f *fanOut) transform(obj any) (any, error) {
	if live, ok := obj.(*metav1.PartialObjectMetadata); ok {
		trimMetadata(live)
	}
	return obj, nil
}

// trimMetadata removes the metadata that subscriptions do not need.
func trimMetadata(obj *metav1.PartialObjectMetadata) {
	obj.ObjectMeta = metav1.ObjectMeta{
		Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID, ResourceVersion: obj.ResourceVersion, Labels: obj.Labels,
	}
}

// put passes an object that was created or changed to the subscriptions.
func (f *fanOut) put(obj any) error { return f.notifyAll(obj, false) }

// remove passes an object that was deleted to the subscriptions.
func (f *fanOut) remove(obj any) error { return f.notifyAll(obj, true) }

func (f *fanOut) notifyAll(obj any, deleted bool) error {
	live, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return fmt.Errorf("%T is not a PartialObjectMetadata", obj)
	}
	for _, s := range f.list() {
		s.observe(live, deleted)
	}
	return nil
}

// replace passes a complete list to the subscriptions.
func (f *fanOut) replace(list []any, version string) error {
	objects := make([]*metav1.PartialObjectMetadata, 0, len(list))
	for _, obj := range list {
		if live, ok := obj.(*metav1.PartialObjectMetadata); ok {
			objects = append(objects, live)
		}
	}
	f.w.mu.Lock()
	f.synced = !f.hasEnded()
	f.notify()
	subscriptions := slices.Collect(maps.Keys(f.subscriptions))
	f.w.mu.Unlock()
	for _, s := range subscriptions {
		s.observeAll(objects, version)
	}
	return nil
}

// setVersion does nothing.
func (f *fanOut) setVersion(string) {}

// isNeeded reports whether there are subscriptions.
func (f *fanOut) isNeeded() bool { return len(f.subscriptions) > 0 }

// reset does nothing, because the fan-out stores no objects.
func (f *fanOut) reset() {}

// onRefused returns a function that makes each subscription join another source.
func (f *fanOut) onRefused() func() {
	lost := slices.Collect(maps.Keys(f.subscriptions))
	clear(f.subscriptions)
	if only := f.scope.only; only != nil {
		only.scopes = nil // the cluster does not allow the narrowest scope either
	}
	return func() {
		for _, s := range lost {
			s.startWatching()
		}
	}
}
