// SPDX-License-Identifier: Apache-2.0

// Package memo stores the results of functions together with the inputs of the functions, so that results can be
// reused.
package memo

import (
	"reflect"
	"sync"
)

// Memo stores one result for each key. The zero value is empty. A Memo is safe for concurrent use.
type Memo[K comparable, In, Out any] struct {
	mu  sync.Mutex
	all map[K]result[In, Out]
}

type result[In, Out any] struct {
	in  In
	out Out
}

// Put stores a result and its input under a key. It replaces the previous result for the key.
func (m *Memo[K, In, Out]) Put(key K, in In, out Out) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[K]result[In, Out]{}
	}
	m.all[key] = result[In, Out]{in, out}
}

// Get returns the result that is stored under a key. It returns false if there is no result, or if the result was
// stored with another input.
func (m *Memo[K, In, Out]) Get(key K, in In) (out Out, found bool) {
	m.mu.Lock()
	before, found := m.all[key]
	m.mu.Unlock()
	if !found || !reflect.DeepEqual(before.in, in) {
		return out, false
	}
	return before.out, true
}

// Forget removes the result that is stored under a key.
func (m *Memo[K, In, Out]) Forget(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, key)
}
