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

// Owner names the target, and the namespace of the target, for which a part of a budget is used.
type Owner struct{ Namespace, Target string }

// Budget is an amount of memory that all targets share. If several claims wait for memory, the namespace that uses the
// least memory comes first. Within this namespace, the target that uses the least memory comes first. For this target,
// the claim that has waited longest comes first. A Budget is safe for concurrent use.
type Budget struct {
	use, hint string // parts of error messages, see New
	total     int64

	mu              sync.Mutex
	used            int64
	usedByOwner     map[Owner]int64
	usedByNamespace map[string]int64 // the amount that each namespace uses
	waiting         []*Claim
	waits           int64
}

// Claim is a part of a budget. A nil Claim is an empty part, and releasing it does nothing.
type Claim struct {
	b       *Budget
	owner   Owner
	amount  int64
	granted chan struct{}
}

// New returns a budget with the given total size in bytes. Error messages contain use, the operation that needs the
// memory, such as "read", and hint, which describes how to raise the total.
func New(use, hint string, total int64) *Budget {
	return &Budget{use: use, hint: hint, total: total, usedByOwner: map[Owner]int64{}, usedByNamespace: map[string]int64{}}
}

// exhaustedError is returned if a response did not get memory from a budget in time. The target did not cause this
// error.
type exhaustedError struct {
	b     *Budget
	cause error
}

func (e *exhaustedError) Error() string {
	return fmt.Sprintf("the response of the target could not be %s in time: all responses of targets together may use %d bytes (%s)",
		e.b.use, e.b.total, e.b.hint)
}

func (e *exhaustedError) Unwrap() error { return e.cause }

// IsExhausted reports whether err means that a budget did not grant a claim in time.
func IsExhausted(err error) bool {
	_, is := errors.AsType[*exhaustedError](err)
	return is
}

// Acquire waits until the given number of bytes of the budget is available. If the number exceeds the total, Acquire
// waits for the whole budget. If ctx is done before that, Acquire returns an error for which IsExhausted returns true.
func (b *Budget) Acquire(ctx context.Context, owner Owner, amount int64) (*Claim, error) {
	c := &Claim{b: b, owner: owner, amount: min(amount, b.total), granted: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, c)
	b.grantWaiting()
	if slices.Contains(b.waiting, c) {
		b.waits++
	}
	b.mu.Unlock()
	select {
	case <-c.granted:
		return c, nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.addUsed(c, -c.amount)
	}
	b.grantWaiting()
	return nil, &exhaustedError{b: b, cause: context.Cause(ctx)}
}

// grantWaiting grants waiting claims one after the other, and stops at the first claim that does not fit. The caller
// holds the lock.
func (b *Budget) grantWaiting() {
	for len(b.waiting) > 0 {
		next := slices.MinFunc(b.waiting, func(x, y *Claim) int {
			return cmp.Or(cmp.Compare(b.usedByNamespace[x.owner.Namespace], b.usedByNamespace[y.owner.Namespace]), cmp.Compare(b.usedByOwner[x.owner], b.usedByOwner[y.owner]))
		})
		if b.used+next.amount > b.total {
			return
		}
		b.waiting = slices.DeleteFunc(b.waiting, func(c *Claim) bool { return c == next })
		b.addUsed(next, next.amount)
		close(next.granted)
	}
}

// addUsed adds `amount` bytes to the memory that the owner of c uses. The amount may be negative. The caller holds the
// lock.
func (b *Budget) addUsed(c *Claim, amount int64) {
	b.used += amount
	b.usedByOwner[c.owner] += amount
	b.usedByNamespace[c.owner.Namespace] += amount
	if b.usedByOwner[c.owner] == 0 {
		delete(b.usedByOwner, c.owner)
	}
	if b.usedByNamespace[c.owner.Namespace] == 0 {
		delete(b.usedByNamespace, c.owner.Namespace)
	}
}

// Release returns the memory of the claim to the budget. Further calls do nothing.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	if c.amount == 0 {
		return
	}
	c.b.addUsed(c, -c.amount)
	c.amount = 0
	c.b.grantWaiting()
}

// GetSize returns the total size of the budget in bytes.
func (b *Budget) GetSize() int64 { return b.total }

// GetUsage returns the number of bytes in use, and the number of claims that have had to wait so far.
func (b *Budget) GetUsage() (used, waits int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used, b.waits
}
