// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"context"
	"sync"
)

type holdKey struct{}

// Hold collects the claims for all responses that one call of a client receives.
type Hold struct {
	mu     sync.Mutex
	claims []*Claim
	size   int64 // size of all responses, in bytes
	ended  bool
}

// WithHold returns a context for one call of a client, and the new Hold that the context contains.
func WithHold(ctx context.Context) (context.Context, *Hold) {
	h := &Hold{}
	return context.WithValue(ctx, holdKey{}, h), h
}

// HoldOf returns the Hold of a context, or nil if the context contains none.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// Add records the size of a response and the claim for this response. The claim may be nil. After Release, Add releases
// the claim immediately.
func (h *Hold) Add(c *Claim, size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.size += int64(size)
	if h.ended {
		c.Release()
		return
	}
	h.claims = append(h.claims, c)
}

// Size returns the size of all responses in bytes.
func (h *Hold) Size() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.size
}

// Release releases all claims.
func (h *Hold) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, c := range h.claims {
		c.Release()
	}
	h.claims = nil
}
