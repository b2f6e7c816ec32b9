// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/notfound"
	"github.com/deployerkit/deployerkit/internal/version"
)

// maxAnswers is the maximum number of objects of one kind for which a freshReader stores the last response of the API
// server.
const maxAnswers = 2000

// freshReader reads the objects of one kind to which items refer. It reads from the cache, and from the API server if
// the cache may lag behind the run of the item. It is safe for concurrent use.
//
// The cache cannot prove that it is up to date: a watch in which nothing changes and a watch whose events are delayed
// look the same. Only a request that was sent after the item had arrived proves it. Such a request is valid for all
// items that arrived before it was sent.
type freshReader[T client.Object] struct {
	cached, live client.Reader
	clock        clock.PassiveClock
	empty        func() T // returns a new object

	mu      sync.Mutex
	answers *lru.Cache // by name; values are *answer[T]
}

// answer is the last response of the API server about an object.
type answer[T client.Object] struct {
	reading chan struct{} // contains an element while a request is in progress

	// The lock of the freshReader guards the other fields.
	at      time.Time // when the request was sent; zero if there was none
	missing bool      // the object does not exist
	newer   bool      // the field `object` is set, because the cache has not received this version yet
	object  T
}

func newFreshReader[T client.Object](cached, live client.Reader, clk clock.PassiveClock, empty func() T) *freshReader[T] {
	return &freshReader[T]{cached: cached, live: live, clock: clk, empty: empty, answers: lru.New(maxAnswers)}
}

// get reads an object. The result is the version that the API server had at the time `since`, or a newer one. If
// `since` is zero, the version in the cache is good enough.
func (r *freshReader[T]) get(ctx context.Context, key client.ObjectKey, since time.Time) (T, error) {
	cached := r.empty()
	err := r.cached.Get(ctx, key, cached)
	if err != nil && !notfound.IsProof(err) {
		return cached, err
	}
	known := r.getLastAnswer(key)
	if !since.IsZero() && !r.isFresh(known, since, err == nil) {
		if failure := r.readLive(ctx, key, known, since, err == nil); failure != nil {
			return cached, failure
		}
	}
	if newer, found := r.getNewer(known, cached, err == nil); found {
		return newer, nil
	}
	return cached, err
}

// isFresh reports whether the last response is from the time `since` or later. A response that the object does not
// exist covers nothing if the cache contains the object, which may have been created in the meantime.
func (r *freshReader[T]) isFresh(known *answer[T], since time.Time, isCached bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !known.at.IsZero() && !known.at.Before(since) && (!known.missing || !isCached)
}

// readLive reads an object from the API server, unless another call has done so since. If the object does not exist,
// readLive returns the error of the API server.
func (r *freshReader[T]) readLive(ctx context.Context, key client.ObjectKey, known *answer[T], since time.Time, isCached bool) error {
	select {
	case known.reading <- struct{}{}:
		defer func() { <-known.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if r.isFresh(known, since, isCached) {
		return nil
	}
	at, object := r.clock.Now(), r.empty()
	err := r.live.Get(ctx, key, object)
	if err != nil && !notfound.IsProof(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known.at, known.missing, known.newer, known.object = at, err != nil, err == nil, object
	return err
}

// getNewer returns the object of the last response if it is newer than the one in the cache.
func (r *freshReader[T]) getNewer(known *answer[T], cached T, isCached bool) (newer T, found bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !known.newer {
		return newer, false
	}
	if isCached && !version.IsOlder(cached.GetResourceVersion(), known.object.GetResourceVersion()) {
		known.newer, known.object = false, newer
		return newer, false
	}
	newer, found = known.object.DeepCopyObject().(T)
	return newer, found
}

// getLastAnswer returns the last response about an object.
func (r *freshReader[T]) getLastAnswer(key client.ObjectKey) *answer[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stored, ok := r.answers.Get(key); ok {
		if known, ok := stored.(*answer[T]); ok {
			return known
		}
	}
	known := &answer[T]{reading: make(chan struct{}, 1)}
	r.answers.Add(key, known)
	return known
}

// forget discards the last response about an object. It is called for each event about the object.
func (r *freshReader[T]) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers.Remove(key)
}
