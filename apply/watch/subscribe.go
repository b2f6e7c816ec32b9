// SPDX-License-Identifier: Apache-2.0

package watch

import "k8s.io/apimachinery/pkg/types"

// Subscribe registers f, which is called for every drift, in the goroutine that found it. f must not block. The
// returned function ends the subscription.
func (w *Watcher) Subscribe(f func(Event)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	id := w.lastID
	w.subscribers[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subscribers, id)
	}
}

// Follow registers f, which is called whenever any object with the item's label changes in any way, including its
// status. It serves callers that wait until objects are ready. f must not block. The returned function ends the
// calls.
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

// emit calls the subscribers without the lock, so that they may call the Watcher.
func (w *Watcher) emit(events []Event) {
	if len(events) == 0 {
		return
	}
	w.mu.Lock()
	calls := make([]func(Event), 0, len(w.subscribers))
	for _, f := range w.subscribers {
		calls = append(calls, f)
	}
	w.mu.Unlock()
	for _, event := range events {
		for _, f := range calls {
			f(event)
		}
	}
}

// tell calls the followers of an item.
func (w *Watcher) tell(item types.UID, o Object) {
	w.mu.Lock()
	calls := make([]func(Object), 0, len(w.followers[item]))
	for _, f := range w.followers[item] {
		calls = append(calls, f)
	}
	w.mu.Unlock()
	for _, f := range calls {
		f(o)
	}
}
