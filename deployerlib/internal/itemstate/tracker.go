// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Tracker stores an Item for each deploy item in the cache.
type Tracker struct {
	mu    sync.Mutex
	items map[types.NamespacedName]*Item
}

// NewTracker returns an empty Tracker.
func NewTracker() *Tracker { return &Tracker{items: map[types.NamespacedName]*Item{}} }

// Get returns the state of an item and creates it if necessary.
func (t *Tracker) Get(key types.NamespacedName) *Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	item, ok := t.items[key]
	if !ok {
		item = &Item{}
		t.items[key] = item
	}
	return item
}

// Forget removes the state of an item that no longer exists. If an abandoned call for the item has not returned yet,
// the item is in quarantine. Forget does not remove its state then, so that no other call for the item begins.
func (t *Tracker) Forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if item, ok := t.items[key]; ok && !item.IsQuarantined() {
		delete(t.items, key)
	}
}

// Len returns the number of items.
func (t *Tracker) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.items)
}
