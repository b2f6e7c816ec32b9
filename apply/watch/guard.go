// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// GuardOptions configure a Guard. The zero value is ready to use.
type GuardOptions struct {
	// Heals is the number of corrections of the same field within Window that count as a fight: another writer changes
	// the field again after each correction. The default is 3.
	Heals int
	// Window is the period within which corrections are counted. The default is 5 min.
	Window time.Duration
	// FirstDelay is the delay before the correction with which the number of corrections reaches Heals. The delay
	// doubles with each further correction of the same field. The default is 10 s.
	FirstDelay time.Duration
	// MaxDelay is the longest delay. The default is 10 min.
	MaxDelay time.Duration
	// MaxEntries limits the number of fields that the Guard remembers. If there are more, the Guard forgets the field
	// that has not been corrected for the longest time. The default is 10 000 fields, which take about 3 MB.
	MaxEntries int
	// Clock provides the time. The default is the real clock.
	Clock clock.PassiveClock
}

// Guard slows down fights. In a fight, another writer, usually a controller, changes a field again each time the item
// has corrected the field. The Guard counts corrections per object, field manager and field. It is safe for concurrent
// use.
type Guard struct {
	opts GuardOptions

	mu      sync.Mutex
	records *lru.Cache // contains a *record for each fight
}

// fight is the key under which the Guard counts corrections. The key does not contain the UID of the object, so that
// the count continues if a controller repeatedly deletes the object and creates it again.
type fight struct {
	item    types.UID // distinguishes objects that have the same name in different targets
	object  Object
	manager string
	field   string
}

type record struct {
	heals []time.Time // the latest corrections, at most GuardOptions.Heals
	delay time.Duration
}

// NewGuard returns an empty Guard.
func NewGuard(opts GuardOptions) *Guard {
	opts.Heals = cmp.Or(opts.Heals, 3)
	opts.Window = cmp.Or(opts.Window, 5*time.Minute)
	opts.FirstDelay = cmp.Or(opts.FirstDelay, 10*time.Second)
	opts.MaxDelay = cmp.Or(opts.MaxDelay, 10*time.Minute)
	opts.MaxEntries = cmp.Or(opts.MaxEntries, 10_000)
	opts.Clock = cmp.Or[clock.PassiveClock](opts.Clock, clock.RealClock{})
	return &Guard{opts: opts, records: lru.New(opts.MaxEntries)}
}

// Heal describes when to correct drift, and whether the correction is part of a fight.
type Heal struct {
	// Delay is the time to wait before the correction. Zero means no delay.
	Delay time.Duration
	// Fight means that the same field was corrected too often. Callers should report the fight to users, with Manager
	// and Field.
	Fight bool
	// Manager is the field manager that changes the field again after each correction. It is empty if it is not known.
	// Field is the path of the field or, if the path is not known, the kind of drift (see Event.What).
	Manager, Field string
}

// Heal counts one correction and returns how long to wait before this correction. The count of a field starts again if
// the field has needed no correction for longer than Window plus the last delay.
func (g *Guard) Heal(e Event) Heal {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock.Now()
	var worst Heal
	for _, f := range fights(e) {
		if delay := g.count(f, now); delay > worst.Delay {
			worst = Heal{Delay: delay, Fight: true, Manager: f.manager, Field: f.field}
		}
	}
	return worst
}

// fights returns the keys under which a drift is counted: one for each changed field. For a manager whose fields are
// not known, it returns one key, which contains the kind of drift instead of a field. If no manager is known, it
// returns one key with the kind of drift and without a manager.
func fights(e Event) []fight {
	var out []fight
	for _, c := range e.By {
		if len(c.Fields) == 0 {
			out = append(out, fight{e.Item, e.Object, c.Manager, string(e.What)})
		}
		for _, field := range c.Fields {
			out = append(out, fight{e.Item, e.Object, c.Manager, field})
		}
	}
	if len(out) == 0 {
		out = append(out, fight{e.Item, e.Object, "", string(e.What)})
	}
	return out
}

func (g *Guard) count(f fight, now time.Time) time.Duration {
	r := g.record(f)
	if n := len(r.heals); n > 0 && now.Sub(r.heals[n-1]) > r.delay+g.opts.Window {
		r.heals, r.delay = nil, 0
	}
	r.heals = append(r.heals, now)
	if over := len(r.heals) - g.opts.Heals; over > 0 {
		r.heals = r.heals[over:]
	}
	switch {
	case r.delay > 0:
		r.delay = min(2*r.delay, g.opts.MaxDelay)
	case len(r.heals) == g.opts.Heals && now.Sub(r.heals[0]) <= g.opts.Window:
		r.delay = min(g.opts.FirstDelay, g.opts.MaxDelay)
	}
	return r.delay
}

// record returns the record of the corrections that are counted under a key, and creates the record if necessary. If
// there are too many records, it discards the one that has not been used for the longest time.
func (g *Guard) record(f fight) *record {
	if r, found := g.records.Get(f); found {
		return r.(*record)
	}
	r := &record{}
	g.records.Add(f, r)
	return r
}
