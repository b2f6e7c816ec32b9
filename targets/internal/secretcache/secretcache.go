// SPDX-License-Identifier: Apache-2.0

// Package secretcache keeps the secrets that were read last.
package secretcache

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxSecrets is how many secrets are kept. The least recently used one is dropped first.
	MaxSecrets = 500
	// maxBytes bounds the memory that they take.
	maxBytes = 32 << 20
)

// Cache keeps the secrets that were read last. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*list.Element
	recent *list.List // of *Secret, the one used last in front
	bytes  int
}

// Secret is a secret that was read. It is immutable.
type Secret struct {
	// Data is the content of the secret.
	Data map[string][]byte
	// At is when the secret was read.
	At time.Time

	name  types.NamespacedName
	bytes int
}

// New returns an empty cache.
func New() *Cache {
	return &Cache{byName: map[types.NamespacedName]*list.Element{}, recent: list.New()}
}

// Get returns a secret, or nil if it is not in the cache.
func (s *Cache) Get(name types.NamespacedName) *Secret {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.byName[name]
	if kept == nil {
		return nil
	}
	s.recent.MoveToFront(kept)
	known, _ := kept.Value.(*Secret)
	return known
}

// Add keeps a secret, and drops others if they are too many or too large together.
func (s *Cache) Add(name types.NamespacedName, data map[string][]byte, at time.Time) {
	secret := &Secret{name: name, Data: data, At: at}
	for key, value := range data {
		secret.bytes += len(key) + len(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.byName[name])
	s.byName[name] = s.recent.PushFront(secret)
	s.bytes += secret.bytes
	for s.bytes > maxBytes || s.recent.Len() > MaxSecrets {
		s.drop(s.recent.Back())
	}
}

// Remove drops a secret.
func (s *Cache) Remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.byName[name])
}

// drop removes an element, which may be nil. The lock is held.
func (s *Cache) drop(kept *list.Element) {
	if kept == nil {
		return
	}
	if secret, ok := s.recent.Remove(kept).(*Secret); ok {
		s.bytes -= secret.bytes
		delete(s.byName, secret.name)
	}
}
