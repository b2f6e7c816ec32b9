// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"slices"
	"time"
)

// gate determines whether a queue entry leads to a reconcile. The last reconcile has set a time for the next one.
// Before this time, a queue entry leads to a reconcile only if the item has changed or was triggered.
type gate struct {
	digest    Digest   // the digest of the item after the last attempt, including the writes of that attempt
	expected  []Digest // the digests that result from the writes in flight
	notBefore time.Time
	triggered bool
}

// knows reports whether an attempt has already acted on a version with this digest, or whether a write in flight will
// produce such a version.
func (g *gate) knows(d Digest) bool { return d == g.digest || slices.Contains(g.expected, d) }

// wait returns how long it takes until an unchanged item may be reconciled again.
func (g *gate) wait(now time.Time) time.Duration {
	if g.triggered || !now.Before(g.notBefore) {
		return 0
	}
	return g.notBefore.Sub(now)
}
