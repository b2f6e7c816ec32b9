// SPDX-License-Identifier: Apache-2.0

package observe

import "sync/atomic"

// DefaultMaxWatches is the default limit for the number of open watches.
const DefaultMaxWatches = 2000

// Limit bounds the number of open watches of one or more Watchers. When the limit is reached, further resources are not
// watched. Their Coverage then names the limit as the reason.
type Limit struct {
	max  int64
	used atomic.Int64
}

// NewLimit returns a Limit that allows the given number of open watches. A number of zero or less allows none.
func NewLimit(watches int) *Limit { return &Limit{max: int64(watches)} }

// CountOpenWatches returns the number of open watches.
func (l *Limit) CountOpenWatches() int { return int(l.used.Load()) }

// acquire counts a watch that is opened. It returns false if the limit is reached.
func (l *Limit) acquire() bool {
	if l.used.Add(1) <= l.max {
		return true
	}
	l.used.Add(-1)
	return false
}

// release counts a watch that has ended.
func (l *Limit) release() { l.used.Add(-1) }
