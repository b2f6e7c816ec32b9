// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// callbacks contains the functions that are called for one kind of event. The lock of the Watcher guards it.
type callbacks[F any] struct {
	lastID int
	funcs  map[int]F
}

// add registers a function, and returns its ID. The caller holds the lock.
func (c *callbacks[F]) add(f F) (id int) {
	if c.funcs == nil {
		c.funcs = map[int]F{}
	}
	c.lastID++
	c.funcs[c.lastID] = f
	return c.lastID
}

// register registers a function. The returned function removes it again.
func (c *callbacks[F]) register(w *Watcher, f F) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := c.add(f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(c.funcs, id)
	}
}

// list returns the registered functions. The caller calls them without the lock, so that they may call methods of the
// Watcher.
func (c *callbacks[F]) list(w *Watcher) []F {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Values(c.funcs))
}

// OnDrift registers a function that is called for each drift. It is called in the goroutine that detected the drift and
// must not block. The returned function ends the registration.
func (w *Watcher) OnDrift(f func(Drift)) (stop func()) { return w.drift.register(w, f) }

// OnChange registers a function that is called whenever an object with the item's label changes, even if only its
// status changes. Use it to wait until objects are ready. f must not block. The returned function ends the
// registration.
func (w *Watcher) OnChange(item types.UID, f func(Object)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.change[item] == nil {
		w.change[item] = &callbacks[func(Object)]{}
	}
	c := w.change[item]
	id := c.add(f)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(c.funcs, id); len(c.funcs) == 0 && w.change[item] == c {
			delete(w.change, item)
		}
	}
}

// OnObjectChange registers a function that is called with the UID of an item whenever a whole object of the item
// changes that WatchObjects has stored. If the watch was interrupted, f is called afterwards for each object that
// changed in the meantime. f must not block. The returned function ends the registration.
func (w *Watcher) OnObjectChange(f func(item types.UID)) (stop func()) {
	return w.objectChange.register(w, f)
}

// OnWatchLost registers a function that is called when the target refuses to continue a watch, for example because it
// does not serve the resource any more. It is called with the UID of each item that has an object in this watch. f must
// not block. The returned function ends the registration.
func (w *Watcher) OnWatchLost(f func(item types.UID)) (stop func()) {
	return w.watchLost.register(w, f)
}

// OnUnknownObject registers a function that is called with the UID of an item if a watch reports an object with the
// marks of the item that its inventory does not contain (see SetInventory). f must not block. The returned function
// ends the registration.
func (w *Watcher) OnUnknownObject(f func(item types.UID)) (stop func()) {
	return w.unknown.register(w, f)
}

// notifyDrift calls the functions that OnDrift registered.
func (w *Watcher) notifyDrift(drifts []Drift) {
	if len(drifts) == 0 {
		return
	}
	funcs := w.drift.list(w)
	for _, d := range drifts {
		for _, f := range funcs {
			f(d)
		}
	}
}

// notifyUnknown calls the functions that OnUnknownObject registered for each of the items.
func (w *Watcher) notifyUnknown(items ...types.UID) {
	affected := sets.New(items...).Delete("")
	if len(affected) == 0 {
		return
	}
	funcs := w.unknown.list(w)
	for item := range affected {
		for _, f := range funcs {
			f(item)
		}
	}
}

// listChangeFuncs returns the functions that OnChange registered for an item.
func (w *Watcher) listChangeFuncs(item types.UID) []func(Object) {
	w.mu.Lock()
	c := w.change[item]
	w.mu.Unlock()
	if c == nil {
		return nil
	}
	return c.list(w)
}
