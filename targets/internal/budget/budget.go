// SPDX-License-Identifier: Apache-2.0

// Package budget divides memory between the responses of all targets.
package budget

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Owner is the namespace and the target for which a part of a budget is used.
type Owner struct{ Namespace, Target string }

// Budget is an amount of memory that all targets share. Released memory goes first to the namespace that holds the
// least, then to the target that holds the least, then to the claim that has waited longest. A Budget is safe for
// concurrent use.
type Budget struct {
	use, hint string // what the responses wait for, and how to raise the total
	total     int64

	mu      sync.Mutex
	used    int64
	held    map[Owner]int64
	spaces  map[string]int64 // held amount by namespace
	waiting []*Claim
	waits   int64
}

// Claim is a part of a budget. A nil Claim holds nothing.
type Claim struct {
	b      *Budget
	who    Owner
	amount int64
	given  chan struct{}
}

// New returns a budget of total bytes. Its errors contain use, such as "read", and hint, which says how to raise the
// total.
func New(use, hint string, total int64) *Budget {
	return &Budget{use: use, hint: hint, total: total, held: map[Owner]int64{}, spaces: map[string]int64{}}
}

// exhaustedError is the error of a response that waited in vain for a part of a budget. The target did not cause it.
type exhaustedError struct {
	b     *Budget
	cause error
}

func (e *exhaustedError) Error() string {
	return fmt.Sprintf("the answer of the target waited in vain to be %s: the answers of all targets may take %d bytes at a time (%s)",
		e.b.use, e.b.total, e.b.hint)
}

func (e *exhaustedError) Unwrap() error { return e.cause }

// IsExhausted reports whether err is the error of a claim that waited in vain.
func IsExhausted(err error) bool {
	_, is := errors.AsType[*exhaustedError](err)
	return is
}

// Claim waits until ctx is done for a part of the budget. If amount exceeds the total, the claim gets all of it. If ctx
// is done first, the error is one for which IsExhausted returns true.
func (b *Budget) Claim(ctx context.Context, who Owner, amount int64) (*Claim, error) {
	c := &Claim{b: b, who: who, amount: min(amount, b.total), given: make(chan struct{})}
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
	return nil, &exhaustedError{b: b, cause: context.Cause(ctx)}
}

// serve grants waiting claims while the next one fits. The caller holds the lock.
func (b *Budget) serve() {
	for len(b.waiting) > 0 {
		next := slices.MinFunc(b.waiting, func(x, y *Claim) int {
			return cmp.Or(cmp.Compare(b.spaces[x.who.Namespace], b.spaces[y.who.Namespace]), cmp.Compare(b.held[x.who], b.held[y.who]))
		})
		if b.used+next.amount > b.total {
			return
		}
		b.waiting = slices.DeleteFunc(b.waiting, func(c *Claim) bool { return c == next })
		b.give(next, next.amount)
		close(next.given)
	}
}

// give changes the held amount. The caller holds the lock.
func (b *Budget) give(c *Claim, amount int64) {
	b.used += amount
	b.held[c.who] += amount
	b.spaces[c.who.Namespace] += amount
	if b.held[c.who] == 0 {
		delete(b.held, c.who)
	}
	if b.spaces[c.who.Namespace] == 0 {
		delete(b.spaces, c.who.Namespace)
	}
}

// Release returns the claim to the budget. Further calls do nothing.
func (c *Claim) Release() {
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

// State returns the used amount, and how many claims had to wait so far.
func (b *Budget) State() (used, waits int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.waits
}
