// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Subscribe registers a function that is called for every drift. It is called in the goroutine that detected the drift
// and must not block. The returned function ends the subscription.
func (w *Watcher) Subscribe(f func(Event)) (stop func()) { return register(w, w.subscribers, f) }

// register adds a function to a map whose keys are numbers. The returned function removes it again.
func register[F any](w *Watcher, all map[int]F, f F) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	id := w.lastID
	all[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(all, id)
	}
}

// Follow registers a function that is called whenever an object with the item's label changes, even if only its status
// changes. Use Follow to wait until objects are ready. f must not block. The returned function ends the registration.
func (w *Watcher) Follow(item types.UID, f func(Object)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	id := w.lastID
	if w.followers[item] == nil {
		w.followers[item] = map[int]func(Object){}
	}
	w.followers[item][id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.followers[item], id)
		if len(w.followers[item]) == 0 {
			delete(w.followers, item)
		}
	}
}

// FollowLosses registers a function that is called when the target refuses to continue a watch, for example because it
// does not serve the resource any more. It is called with the UID of each item that expects an object of this watch. f
// must not block. The returned function ends the registration.
func (w *Watcher) FollowLosses(f func(item types.UID)) (stop func()) {
	return register(w, w.losses, f)
}

// tellLoss calls the functions that FollowLosses registered for each of the items. It does not hold the lock during the
// calls.
func (w *Watcher) tellLoss(items sets.Set[types.UID]) {
	w.mu.Lock()
	calls := slices.Collect(maps.Values(w.losses))
	w.mu.Unlock()
	for item := range items {
		for _, f := range calls {
			f(item)
		}
	}
}

// emit calls the subscribers. It does not hold the lock during the calls, so that the subscribers may call methods of
// the Watcher.
func (w *Watcher) emit(events []Event) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	calls := slices.Collect(maps.Values(w.subscribers))
	w.mu.Unlock()
	for _, event := range events {
		for _, f := range calls {
			f(event)
		}
	}
}

// tell calls the functions that Follow registered for an item. If the stream stores whole objects, tell also calls the
// functions that FollowObjects registered. It does not hold the lock during the calls.
func (s *stream) tell(item types.UID, o Object) {
	w := s.w
	w.mu.Lock()
	calls := slices.Collect(maps.Values(w.followers[item]))
	var observers []func(types.UID)
	if s.whole {
		observers = slices.Collect(maps.Values(w.observers))
	}
	w.mu.Unlock()
	for _, f := range calls {
		f(o)
	}
	for _, f := range observers {
		f(item)
	}
}
