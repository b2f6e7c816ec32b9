// SPDX-License-Identifier: Apache-2.0

// Package pacer delays watches that repeatedly end early.
package pacer

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/lru"
)

const (
	// shortWatch is the duration after which a watch counts as successful, however it ends.
	shortWatch = 30 * time.Second
	// minWatchPause is the pause after a watch that failed before shortWatch had passed. The pause doubles after each
	// further failure, up to maxWatchPause.
	minWatchPause = time.Second
	maxWatchPause = 30 * time.Second
	// watchBurst is how often a watch may be opened in quick succession, regardless of how it ends. After that, it may
	// be opened once per second.
	watchBurst = 30
	// maxWatches is the maximum number of watches that a Pacer remembers.
	maxWatches = 2000
)

// Pacer delays watches that repeatedly end early. It is needed because client-go does not always wait before it opens a
// watch again. A Pacer is safe for concurrent use.
type Pacer struct {
	mu      sync.Mutex
	watches *lru.Cache // the keys identify watches; the values are *pace
}

// pace contains the limiter and the current pause of one watch.
type pace struct {
	starts *rate.Limiter
	pause  time.Duration
	next   time.Time
}

// New returns an empty Pacer.
func New() *Pacer { return &Pacer{watches: lru.New(maxWatches)} }

// GetKey returns an identifier of a watch. It depends on the objects that the request watches, but not on options such
// as resourceVersion and timeoutSeconds.
func GetKey(req *http.Request) string {
	query := req.URL.Query()
	for _, name := range []string{"resourceVersion", "timeoutSeconds", "timeout", "allowWatchBookmarks", "resourceVersionMatch"} {
		query.Del(name)
	}
	return req.URL.Path + "?" + query.Encode()
}

func (p *Pacer) getPace(watch string) *pace {
	if known, ok := p.watches.Get(watch); ok {
		if it, ok := known.(*pace); ok {
			return it
		}
	}
	it := &pace{starts: rate.NewLimiter(1, watchBurst)}
	p.watches.Add(watch, it)
	return it
}

// getDelay returns how long the caller must wait before it opens the watch.
func (p *Pacer) getDelay(watch string, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.getPace(watch)
	return max(it.next.Sub(now), it.starts.ReserveN(now, 1).DelayFrom(now), 0)
}

// RecordEnd records the end of a watch. If the client ended the watch, failed must be false.
func (p *Pacer) RecordEnd(watch string, began, now time.Time, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	it := p.getPace(watch)
	switch {
	case now.Sub(began) >= shortWatch:
		it.pause = 0
	case failed:
		it.pause = min(max(2*it.pause, minWatchPause), maxWatchPause)
		it.next = now.Add(it.pause)
	}
}

// Wait waits until the watch may be opened.
func (p *Pacer) Wait(ctx context.Context, watch string, now time.Time) error {
	pause := p.getDelay(watch, now)
	if pause == 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
