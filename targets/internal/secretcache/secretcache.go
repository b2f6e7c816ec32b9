// SPDX-License-Identifier: Apache-2.0

// Package secretcache caches secrets.
package secretcache

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// MaxSecrets is the maximum number of secrets in a Cache. If there are more, the least recently used one is
	// dropped.
	MaxSecrets = 500
	// maxBytes is the maximum size of all secrets in a Cache together, in bytes.
	maxBytes = 32 << 20
)

// Cache contains the most recently used secrets. It is safe for concurrent use.
type Cache struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*list.Element
	recent *list.List // values are *Secret, the most recently used secret first
	bytes  int
}

// Secret is a secret in the cache. It is immutable.
type Secret struct {
	// Data is the content of the secret.
	Data map[string][]byte
	// At is the time at which the secret was read.
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

// Add adds a secret. It drops the least recently used secrets if there are too many or if they are too large together.
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

// drop removes an element, which may be nil. The caller holds the lock.
func (s *Cache) drop(kept *list.Element) {
	if kept == nil {
		return
	}
	if secret, ok := s.recent.Remove(kept).(*Secret); ok {
		s.bytes -= secret.bytes
		delete(s.byName, secret.name)
	}
}
