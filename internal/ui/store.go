// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// batchSize is the maximum number of rows in one message to the page.
const batchSize = 500

// store contains the current rows, and tells subscribers which rows have changed. It is safe for concurrent use.
type store struct {
	mu          sync.Mutex
	rows        map[string]row
	subscribers map[*subscription]bool
}

func newStore() *store {
	return &store{rows: map[string]row{}, subscribers: map[*subscription]bool{}}
}

// subscription collects the IDs of the rows that have changed since the subscriber last called take. Its size is
// therefore limited by the number of rows, even if the subscriber is slow.
type subscription struct {
	store *store
	dirty map[string]bool
	// changed receives a value if there are changed rows.
	changed chan struct{}
}

// rowChanges are the changes of one message to the page.
type rowChanges struct {
	Set    []row    `json:"set,omitempty"`
	Remove []string `json:"remove,omitempty"`
}

// set adds or replaces a row.
func (s *store) set(r row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rows[r.ID] == r {
		return
	}
	s.rows[r.ID] = r
	s.mark(r.ID)
}

// remove removes a row.
func (s *store) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, id)
	s.mark(id)
}

// mark records a changed row for all subscribers. The caller holds mu.
func (s *store) mark(id string) {
	for sub := range s.subscribers {
		sub.dirty[id] = true
		sub.notify()
	}
}

// subscribe returns a subscription for which all current rows count as changed. It returns nil if there are already
// `limit` subscribers. The caller must call close.
func (s *store) subscribe(limit int) *subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.subscribers) >= limit {
		return nil
	}
	sub := &subscription{store: s, dirty: map[string]bool{}, changed: make(chan struct{}, 1)}
	for id := range s.rows {
		sub.dirty[id] = true
	}
	sub.notify()
	s.subscribers[sub] = true
	return sub
}

// notify makes changed receivable. The caller holds the mutex of the store.
func (s *subscription) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// take returns the changes since the last call, in messages of at most batchSize rows, and failed rows first.
func (s *subscription) take() []rowChanges {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	var set []row
	var removed []string
	for _, id := range slices.Sorted(maps.Keys(s.dirty)) {
		if r, found := s.store.rows[id]; found {
			set = append(set, r)
		} else {
			removed = append(removed, id)
		}
	}
	s.dirty = map[string]bool{}
	slices.SortStableFunc(set, func(a, b row) int { return cmp.Compare(getRank(a.State), getRank(b.State)) })
	var out []rowChanges
	for batch := range slices.Chunk(set, batchSize) {
		out = append(out, rowChanges{Set: batch})
	}
	for batch := range slices.Chunk(removed, batchSize) {
		out = append(out, rowChanges{Remove: batch})
	}
	return out
}

// getRank returns 0 for the state that needs attention, and 1 for all others.
func getRank(state string) int {
	if state == stateFailed {
		return 0
	}
	return 1
}

// close ends the subscription.
func (s *subscription) close() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.subscribers, s)
}
