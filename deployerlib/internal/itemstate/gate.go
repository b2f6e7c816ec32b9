// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"slices"
	"time"
)

// gate is the clock of an item. It alone decides when a queue entry leads to a reconcile, whatever added the entry: an
// event, a trigger or a timer. The last reconcile has set the times in the field `schedule`. A change of the item opens
// the gate at once, and so does a change of an object that the item refers to.
type gate struct {
	digest    Digest   // the digest of the item after the last attempt, including the writes of that attempt
	expected  []Digest // the digests that result from the writes in flight
	schedule  storedSchedule
	triggered bool // a reconcile was requested; the gate opens at schedule.TriggersNotBefore
	open      bool // the next queue entry leads to a reconcile
}

// Schedule contains the times that an attempt sets for the next attempt on an unchanged item.
type Schedule struct {
	// Next is the time of the next attempt if nothing triggers it earlier. If Next is zero, no attempt is planned.
	Next time.Time
	// TriggersNotBefore is the time before which no trigger starts an attempt, for example because the last attempt
	// failed. If TriggersNotBefore is zero, a trigger starts an attempt at once.
	TriggersNotBefore time.Time
	// ChangesNotBefore is the time before which also a change of the item starts no attempt, unless a job is due: the
	// end of the interval after a background run.
	ChangesNotBefore time.Time
}

// storedSchedule is a Schedule in the memory of an Item.
type storedSchedule struct{ next, triggersNotBefore, changesNotBefore instant }

// toStored returns the schedule for the memory of an Item.
func (s Schedule) toStored() storedSchedule {
	return storedSchedule{toInstant(s.Next), toInstant(s.TriggersNotBefore), toInstant(s.ChangesNotBefore)}
}

// isKnown reports whether an attempt has already acted on a version with this digest, or whether a write in flight will
// produce such a version.
func (g *gate) isKnown(d Digest) bool { return d == g.digest || slices.Contains(g.expected, d) }

// getDelay returns how long it takes until an unchanged item may be reconciled again.
func (g *gate) getDelay(now time.Time) time.Duration {
	if g.open {
		return 0
	}
	at, triggersNotBefore := g.schedule.next.toTime(), g.schedule.triggersNotBefore.toTime()
	if at.IsZero() || g.triggered && triggersNotBefore.Before(at) {
		at = triggersNotBefore
	}
	return max(at.Sub(now), 0)
}
