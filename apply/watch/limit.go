// SPDX-License-Identifier: Apache-2.0

package watch

import "sync/atomic"

// DefaultMaxWatches is the default limit of open watches.
const DefaultMaxWatches = 2000

// Limit bounds the watches of one or more Watchers. A resource beyond the limit is not watched, and its Coverage
// reports that.
type Limit struct {
	max  int64
	used atomic.Int64
}

// NewLimit returns a Limit that allows the given number of watches at a time. Zero or less allows none.
func NewLimit(watches int) *Limit { return &Limit{max: int64(watches)} }

// Used returns how many watches are open.
func (l *Limit) Used() int { return int(l.used.Load()) }

func (l *Limit) take() bool {
	if l.used.Add(1) <= l.max {
		return true
	}
	l.used.Add(-1)
	return false
}

func (l *Limit) give() { l.used.Add(-1) }
