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

// Store keeps the last reconciles of many items. If they exceed its limit, those of the least recently reconciled items
// are dropped. It is safe for concurrent use. The methods of a nil Store do nothing.
type Store struct {
	limit int

	mu     sync.Mutex
	items  map[types.NamespacedName]*list.Element // of *entry
	recent list.List                              // the most recently reconciled item first
	bytes  int
}

// entry is what is kept of one item.
type entry struct {
	item       types.NamespacedName
	reconciles [][]byte // JSON, oldest first
	next       time.Time
}

// entryBytes is the approximate size of an entry without its reconciles.
const entryBytes = 512

// NewStore returns a store for at most limit bytes. If limit is zero, it is [DefaultStoreBytes].
func NewStore(limit int) *Store {
	return &Store{limit: cmp.Or(limit, DefaultStoreBytes), items: map[types.NamespacedName]*list.Element{}}
}

// Begin begins the recording of a reconcile. It returns nil on a nil Store.
func (s *Store) Begin(item types.NamespacedName, now time.Time) *Recording {
	if s == nil {
		return nil
	}
	return &Recording{store: s, item: item, r: Reconcile{Began: now.UTC(), Trigger: s.trigger(item, now)}}
}

// trigger returns what triggers a reconcile that begins now.
func (s *Store) trigger(item types.NamespacedName, now time.Time) string {
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

// put adds a reconcile. next is when the next one is due, or zero.
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
	e.reconciles = append(e.reconciles, raw)
	s.bytes += len(raw)
	if len(e.reconciles) > MaxReconciles {
		s.bytes -= len(e.reconciles[0])
		e.reconciles = append(make([][]byte, 0, MaxReconciles+1), e.reconciles[1:]...)
	}
	for s.bytes > s.limit && s.recent.Len() > 1 {
		s.forget(s.recent.Back())
	}
}

// forget removes an item.
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

// word returns a short text in one line.
func word(s string) string {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' {
			return contract.OneLine(s, maxWord)
		}
	}
	return contract.Truncate(s, maxWord)
}
