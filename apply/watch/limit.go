// SPDX-License-Identifier: Apache-2.0

package watch

import "sync/atomic"

// DefaultMaxWatches is how many watches may be open if nothing else is said.
const DefaultMaxWatches = 2000

// Limit bounds the watches of one or more Watchers. What is over it is not watched, and its Coverage says so.
type Limit struct {
	max  int64
	used atomic.Int64
}

// NewLimit allows so many watches at a time. Zero or less: none.
func NewLimit(watches int) *Limit { return &Limit{max: int64(watches)} }

// Used is how many watches are open.
func (l *Limit) Used() int { return int(l.used.Load()) }

func (l *Limit) take() bool {
	if l.used.Add(1) <= l.max {
		return true
	}
	l.used.Add(-1)
	return false
}

func (l *Limit) give() { l.used.Add(-1) }
