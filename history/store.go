// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"container/list"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// Store contains the last reconciles of many items. If the reconciles need more memory than the limit, the Store drops
// the items that were reconciled least recently, with all of their reconciles. A Store is safe for concurrent use. The
// methods of a nil Store do nothing.
type Store struct {
	limit int

	mu     sync.Mutex
	items  map[types.NamespacedName]*list.Element // the values are of type *entry
	recent list.List                              // the most recently reconciled item first
	bytes  int
}

// entry contains the stored reconciles of an item.
type entry struct {
	item       types.NamespacedName
	reconciles [][]byte // JSON, oldest first
	next       time.Time
}

// entryBytes is the approximate size of an entry without its reconciles.
const entryBytes = 512

// NewStore returns a store with the given limit in bytes. Zero means [DefaultStoreBytes].
func NewStore(limit int) *Store {
	return &Store{limit: cmp.Or(limit, DefaultStoreBytes), items: map[types.NamespacedName]*list.Element{}}
}

// Begin starts the recording of a reconcile. It returns nil if the Store is nil.
func (s *Store) Begin(item types.NamespacedName, now time.Time) *Recording {
	if s == nil {
		return nil
	}
	return &Recording{store: s, item: item, r: Reconcile{Began: now.UTC(), Trigger: s.getTrigger(item, now)}}
}

// getTrigger returns what has triggered a reconcile that begins now.
func (s *Store) getTrigger(item types.NamespacedName, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, known := s.items[item]
	if !known {
		return TriggerStart
	}
	if next := e.Value.(*entry).next; !next.IsZero() && !now.Before(next) {
		return TriggerTimer
	}
	return TriggerEvent
}

// put stores a reconcile. The next reconcile is due at the time next. If next is zero, there is none.
func (s *Store) put(item types.NamespacedName, r *Reconcile, next time.Time) {
	raw := r.encode()
	s.mu.Lock()
	defer s.mu.Unlock()
	element, known := s.items[item]
	if known {
		s.recent.MoveToFront(element)
	} else {
		element = s.recent.PushFront(&entry{item: item})
		s.items[item] = element
		s.bytes += entryBytes
	}
	e := element.Value.(*entry)
	e.next = next
	if raw != nil { // raw is nil if the reconcile is too large
		e.reconciles = append(e.reconciles, raw)
		s.bytes += len(raw)
	}
	if len(e.reconciles) > maxReconciles {
		s.bytes -= len(e.reconciles[0])
		e.reconciles = append(make([][]byte, 0, maxReconciles+1), e.reconciles[1:]...)
	}
	for s.bytes > s.limit && s.recent.Len() > 1 {
		s.forget(s.recent.Back())
	}
}

// forget removes an item and its reconciles.
func (s *Store) forget(element *list.Element) {
	e := s.recent.Remove(element).(*entry)
	delete(s.items, e.item)
	s.bytes -= entryBytes
	for _, raw := range e.reconciles {
		s.bytes -= len(raw)
	}
}

// Get returns the last reconciles of an item, oldest first.
func (s *Store) Get(item types.NamespacedName) []Reconcile {
	var out []Reconcile
	for _, raw := range s.raw(item) {
		var r Reconcile
		if json.Unmarshal(raw, &r) == nil {
			out = append(out, r)
		}
	}
	return out
}

func (s *Store) raw(item types.NamespacedName) [][]byte {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	element, known := s.items[item]
	if !known {
		return nil
	}
	return append([][]byte(nil), element.Value.(*entry).reconciles...)
}

// shortenText shortens a text, and removes line breaks and control characters.
func shortenText(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return contract.OneLine(s, maxWord)
		}
	}
	return contract.Truncate(s, maxWord)
}
