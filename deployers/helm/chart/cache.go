// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"container/list"
	"context"
	"sync"
)

// found is what Resolve found, for the use of Fetch. Its functions send the credentials with which Resolve was allowed to
// see the digest.
type found struct {
	// path is the field of the configuration, for errors.
	path string
	// origin identifies the place in which the digest was found. Archives are cached by origin and digest, so that a
	// server cannot give access to archives of other servers by naming their digests.
	origin string
	// load downloads the archive.
	load func(ctx context.Context) ([]byte, error)
	// provenance downloads the provenance file. It may be nil.
	provenance func(ctx context.Context) ([]byte, error)
}

// source is a Source that downloads charts.
type source struct {
	*fetcher

	resolve func(ctx context.Context, r Request) (Identity, error)
}

// Resolve returns the identity of the chart, within the time limit.
func (s *source) Resolve(ctx context.Context, r Request) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.ResolveTimeout)
	defer cancel()
	return s.resolve(ctx, r)
}

// Fetch returns the archive from the cache, or downloads it within the time limit.
func (s *source) Fetch(ctx context.Context, r Request, id Identity) (*Archive, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.FetchTimeout)
	defer cancel()
	if id.found == nil {
		again, err := s.resolve(ctx, r)
		if err != nil {
			return nil, err
		}
		if again.Digest != id.Digest {
			return nil, &Error{Err: errChanged}
		}
		id = again
	}
	key := id.found.origin + " " + id.Digest
	unlock, err := s.locks.lock(ctx, key)
	if err != nil {
		return nil, &Error{Err: cause(err)}
	}
	defer unlock()
	data, err := s.archive(ctx, key, id)
	if err != nil {
		return nil, err
	}
	archive := &Archive{Identity: id, Data: data}
	if r.Keyring != nil && id.found.provenance != nil {
		archive.Provenance, err = id.found.provenance(ctx)
	}
	return archive, err
}

// archive returns the archive from the cache, or downloads it.
func (s *source) archive(ctx context.Context, key string, id Identity) ([]byte, error) {
	if data, ok := s.cache.get(key); ok {
		return data, nil
	}
	data, err := id.found.load(ctx)
	if err != nil {
		return nil, err
	}
	if got := DigestOf(data); got != id.Digest {
		return nil, newError(id.found.path, "%s: the archive has the digest %s, want %s", id.Reference, got, id.Digest)
	}
	s.cache.add(key, data)
	return data, nil
}

// cache contains archives, up to a total size. It removes those that have not been used for the longest time.
type cache struct {
	limit   int64
	observe func(Event)

	mu      sync.Mutex
	size    int64
	order   list.List // of *cached; the first was used last
	entries map[string]*list.Element
}

type cached struct {
	key  string
	data []byte
}

// get returns an archive.
func (c *cache) get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(element)
	c.notify(CacheHit)
	return element.Value.(*cached).data, true
}

// add adds an archive that was downloaded.
func (c *cache) add(key string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify(Download)
	if int64(len(data)) > c.limit || c.entries[key] != nil {
		return
	}
	if c.entries == nil {
		c.entries = map[string]*list.Element{}
	}
	c.entries[key] = c.order.PushFront(&cached{key, data})
	c.size += int64(len(data))
	for c.size > c.limit {
		last := c.order.Remove(c.order.Back()).(*cached)
		delete(c.entries, last.key)
		c.size -= int64(len(last.data))
	}
}

func (c *cache) notify(event Event) {
	if c.observe != nil {
		c.observe(event)
	}
}

// locks contains a lock for each key in use. The holder of a lock downloads; the others find the result in the cache, or
// download themselves if the holder failed.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the lock is free
}

// lock waits for the lock of a key.
func (l *locks) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			free := make(chan struct{})
			if l.held == nil {
				l.held = map[string]chan struct{}{}
			}
			l.held[key] = free
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				delete(l.held, key)
				close(free)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-busy:
		}
	}
}
