// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"slices"
	"time"
)

// gate prevents a queue entry from leading to a reconcile before the time that the last reconcile requested, unless the
// item has changed or was triggered.
type gate struct {
	digest    Digest   // of the item as it was last acted on, including the library's own writes
	expected  []Digest // of the writes in flight
	notBefore time.Time
	triggered bool
}

// knows reports whether a version with this digest was acted on, or results from a write in flight.
func (g *gate) knows(d Digest) bool { return d == g.digest || slices.Contains(g.expected, d) }

// wait returns how long a version that was acted on must wait.
func (g *gate) wait(now time.Time) time.Duration {
	if g.triggered || !now.Before(g.notBefore) {
		return 0
	}
	return g.notBefore.Sub(now)
}
