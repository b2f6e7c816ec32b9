// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"context"
	"sync"

	"github.com/deployerkit/deployerkit/targets/internal/budget"
)

type reservationKey struct{}

// Reservation collects the memory for decoding all responses that one call of a client receives.
type Reservation struct {
	mu       sync.Mutex
	claims   []*budget.Claim
	size     int64 // size of all responses, in bytes
	released bool
}

// WithReservation returns a context for one call of a client, and the new Reservation that the context contains.
func WithReservation(ctx context.Context) (context.Context, *Reservation) {
	r := &Reservation{}
	return context.WithValue(ctx, reservationKey{}, r), r
}

// getReservation returns the Reservation of a context, or nil if the context contains none.
func getReservation(ctx context.Context) *Reservation {
	r, _ := ctx.Value(reservationKey{}).(*Reservation)
	return r
}

// add records the size of a response and the claim for this response. The claim may be nil. After Release, add releases
// the claim immediately.
func (r *Reservation) add(c *budget.Claim, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.size += int64(size)
	if r.released {
		c.Release()
		return
	}
	r.claims = append(r.claims, c)
}

// getSize returns the size of all responses in bytes.
func (r *Reservation) getSize() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}

// reset releases the memory, and allows further calls of add.
func (r *Reservation) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.claims {
		c.Release()
	}
	r.claims = nil
}

// Release releases the memory.
func (r *Reservation) Release() {
	r.reset()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = true
}
