// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// secretsKept and secretBytesKept bound the memory; the least recently used secret goes first.
	secretsKept     = 500
	secretBytesKept = 32 << 20
)

// secrets keeps the secrets that were read last. It is safe for concurrent use.
type secrets struct {
	mu     sync.Mutex
	byName map[types.NamespacedName]*list.Element
	recent *list.List // of *readSecret, the one used last in front
	bytes  int
}

// readSecret is immutable once it is kept.
type readSecret struct {
	name  types.NamespacedName
	data  map[string][]byte
	bytes int
	at    time.Time
}

func newSecrets() *secrets {
	return &secrets{byName: map[types.NamespacedName]*list.Element{}, recent: list.New()}
}

// get returns a secret, or nil.
func (s *secrets) get(name types.NamespacedName) *readSecret {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.byName[name]
	if kept == nil {
		return nil
	}
	s.recent.MoveToFront(kept)
	known, _ := kept.Value.(*readSecret)
	return known
}

// add keeps a secret, and lets others go if they are too many or too large together.
func (s *secrets) add(name types.NamespacedName, data map[string][]byte, at time.Time) {
	secret := &readSecret{name: name, data: data, at: at}
	for key, value := range data {
		secret.bytes += len(key) + len(value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.byName[name])
	s.byName[name] = s.recent.PushFront(secret)
	s.bytes += secret.bytes
	for s.bytes > secretBytesKept || s.recent.Len() > secretsKept {
		s.drop(s.recent.Back())
	}
}

func (s *secrets) remove(name types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(s.byName[name])
}

// drop lets a secret go; nil is none. The lock is held.
func (s *secrets) drop(kept *list.Element) {
	if kept == nil {
		return
	}
	if secret, ok := s.recent.Remove(kept).(*readSecret); ok {
		s.bytes -= secret.bytes
		delete(s.byName, secret.name)
	}
}
