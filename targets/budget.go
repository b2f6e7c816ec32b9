// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// owner is for whom a part of a budget is used.
type owner struct{ namespace, target string }

// budget is an amount of memory that all targets share. Waits end with their context. When something is given back, the
// namespace that holds least goes first, then the target that holds least, then who has waited longest. It is
// safe for concurrent use.
type budget struct {
	option, use string // the field of Limits, and what the answers wait for
	total       int64

	mu      sync.Mutex
	used    int64
	held    map[owner]int64
	spaces  map[string]int64 // what is held by namespace
	waiting []*claim
	waits   int64
}

// claim is a part of a budget. Nil is a claim of nothing.
type claim struct {
	b      *budget
	who    owner
	amount int64
	given  chan struct{}
}

func newBudget(option, use string, total int64) *budget {
	return &budget{option: option, use: use, total: total, held: map[owner]int64{}, spaces: map[string]int64{}}
}

// shareError is the error of an answer that waited in vain for its part of a budget. It says nothing about its target.
type shareError struct {
	b     *budget
	cause error
}

func (e *shareError) Error() string {
	return fmt.Sprintf("the answer of the target waited in vain to be %s: the answers of all targets may take %d bytes at a time (%s)",
		e.b.use, e.b.total, raisedBy(e.b.option))
}

func (e *shareError) Unwrap() error { return e.cause }

func isShareError(err error) bool {
	_, is := errors.AsType[*shareError](err)
	return is
}

// claim waits for a part of the budget. What is more than all of it gets all of it.
// Errors: a shareError when the context ends before.
func (b *budget) claim(ctx context.Context, who owner, amount int64) (*claim, error) {
	c := &claim{b: b, who: who, amount: min(amount, b.total), given: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.serve()
	if slices.Contains(b.waiting, c) {
		b.waits++
	}
	b.mu.Unlock()
	select {
	case <-c.given:
		return c, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.give(c, -c.amount)
	}
	b.serve()
	return nil, &shareError{b: b, cause: context.Cause(ctx)}
}

// serve gives to those who wait, as long as the next one fits. The lock is held.
func (b *budget) serve() {
	for len(b.waiting) > 0 {
		next := slices.MinFunc(b.waiting, func(x, y *claim) int {
			if d := b.spaces[x.who.namespace] - b.spaces[y.who.namespace]; d != 0 {
				return sign(d)
			}
			return sign(b.held[x.who] - b.held[y.who])
		})
		if b.used+next.amount > b.total {
			return
		}
		b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool { return c == next })
		b.give(next, next.amount)
		close(next.given)
	}
}

// give changes what is held. The lock is held.
func (b *budget) give(c *claim, amount int64) {
	b.used += amount
	b.held[c.who] += amount
	b.spaces[c.who.namespace] += amount
	if b.held[c.who] == 0 {
		delete(b.held, c.who)
	}
	if b.spaces[c.who.namespace] == 0 {
		delete(b.spaces, c.who.namespace)
	}
}

// release gives the claim back. Further calls do nothing.
func (c *claim) release() {
	if c == nil {
		return
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.amount == 0 {
		return
	}
	c.b.give(c, -c.amount)
	c.amount = 0
	c.b.serve()
}

// state is for the metrics.
func (b *budget) state() (used, waits int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.waits
}

func sign(d int64) int {
	switch {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

type holdKey struct{}

// hold collects the claims of the answers to one call.
type hold struct {
	mu     sync.Mutex
	claims []*claim
	bytes  int64 // of all answers
	ended  bool
}

// Hold returns a context for one call with a client that is made of Client.Config and Client.HTTPClient, such as a
// dynamic one. The memory that decoding the answer takes counts against Limits.Decoding until release is called: call
// it when the call has returned. Client does this itself. Without Hold, the deployer can only guess how long
// decoding takes.
func Hold(ctx context.Context) (held context.Context, release func()) {
	h := &hold{}
	return context.WithValue(ctx, holdKey{}, h), h.release
}

func (h *hold) add(c *claim, bytes int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bytes += int64(bytes)
	if c == nil {
		return
	}
	if h.ended {
		c.release()
		return
	}
	h.claims = append(h.claims, c)
}

func (h *hold) size() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}

func (h *hold) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, c := range h.claims {
		c.release()
	}
	h.claims = nil
}
