// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// FightOptions configure a FightDetector. The zero value is ready to use.
type FightOptions struct {
	// Corrections is the number of corrections of the same field within Window that count as a fight: another writer
	// changes the field again after each correction. The default is 3.
	Corrections int
	// Window is the period within which corrections are counted. The default is 5 min.
	Window time.Duration
	// FirstDelay is the delay before the correction with which the number of corrections reaches Corrections. The delay
	// doubles with each further correction of the same field. The default is 10 s.
	FirstDelay time.Duration
	// MaxDelay is the longest delay. The default is 10 min.
	MaxDelay time.Duration
	// MaxEntries limits the number of fields that the FightDetector remembers. If there are more, the FightDetector
	// forgets the field that has not been corrected for the longest time. The default is 10 000 fields, which take about 3
	// MB.
	MaxEntries int
	// Clock provides the time. The default is the real clock.
	Clock clock.PassiveClock
}

// FightDetector slows down fights. In a fight, another writer, usually a controller, changes a field again each time
// the item has corrected the field. The FightDetector counts corrections per object, field manager and field. It is
// safe for concurrent use.
type FightDetector struct {
	opts FightOptions

	mu      sync.Mutex
	records *lru.Cache // contains a *record for each fight
}

// fightKey is the key under which the FightDetector counts corrections. The key does not contain the UID of the object,
// so that the count continues if a controller repeatedly deletes the object and creates it again.
type fightKey struct {
	item    types.UID // distinguishes objects that have the same name in different targets
	object  Object
	manager string
	field   string
}

type record struct {
	corrections []time.Time // the latest corrections, at most FightOptions.Corrections
	delay       time.Duration
}

// NewFightDetector returns an empty FightDetector.
func NewFightDetector(opts FightOptions) *FightDetector {
	opts.Corrections = cmp.Or(opts.Corrections, 3)
	opts.Window = cmp.Or(opts.Window, 5*time.Minute)
	opts.FirstDelay = cmp.Or(opts.FirstDelay, 10*time.Second)
	opts.MaxDelay = cmp.Or(opts.MaxDelay, 10*time.Minute)
	opts.MaxEntries = cmp.Or(opts.MaxEntries, 10_000)
	opts.Clock = cmp.Or[clock.PassiveClock](opts.Clock, clock.RealClock{})
	return &FightDetector{opts: opts, records: lru.New(opts.MaxEntries)}
}

// Correction describes when to correct drift, and whether the correction is part of a fight.
type Correction struct {
	// Delay is the time to wait before the correction. Zero means no delay.
	Delay time.Duration
	// Fight means that the same field was corrected too often. Callers should report the fight to users, with Manager
	// and Field.
	Fight bool
	// Manager is the field manager that changes the field again after each correction. It is empty if it is not known.
	// Field is the path of the field or, if the path is not known, the kind of drift (see Drift.Reason).
	Manager, Field string
}

// AddCorrection counts one correction and returns how long to wait before this correction. The count of a field starts
// again if the field has needed no correction for longer than Window plus the last delay.
func (f *FightDetector) AddCorrection(d Drift) Correction {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.opts.Clock.Now()
	var worst Correction
	for _, key := range listFightKeys(d) {
		if delay := f.nextDelay(key, now); delay > worst.Delay {
			worst = Correction{Delay: delay, Fight: true, Manager: key.manager, Field: key.field}
		}
	}
	return worst
}

// listFightKeys returns the keys under which a drift is counted: one for each changed field. For a manager whose fields
// are not known, it returns one key, which contains the kind of drift instead of a field. If no manager is known, it
// returns one key with the kind of drift and without a manager.
func listFightKeys(d Drift) []fightKey {
	var out []fightKey
	for _, c := range d.Changes {
		if len(c.Fields) == 0 {
			out = append(out, fightKey{d.Item, d.Object, c.Manager, string(d.Reason)})
		}
		for _, field := range c.Fields {
			out = append(out, fightKey{d.Item, d.Object, c.Manager, field})
		}
	}
	if len(out) == 0 {
		out = append(out, fightKey{d.Item, d.Object, "", string(d.Reason)})
	}
	return out
}

// nextDelay counts a correction under a key, and returns how long to wait before it. The caller holds the lock.
func (f *FightDetector) nextDelay(key fightKey, now time.Time) time.Duration {
	r := f.record(key)
	if n := len(r.corrections); n > 0 && now.Sub(r.corrections[n-1]) > r.delay+f.opts.Window {
		r.corrections, r.delay = nil, 0
	}
	r.corrections = append(r.corrections, now)
	if over := len(r.corrections) - f.opts.Corrections; over > 0 {
		r.corrections = r.corrections[over:]
	}
	switch {
	case r.delay > 0:
		r.delay = min(2*r.delay, f.opts.MaxDelay)
	case len(r.corrections) == f.opts.Corrections && now.Sub(r.corrections[0]) <= f.opts.Window:
		r.delay = min(f.opts.FirstDelay, f.opts.MaxDelay)
	}
	return r.delay
}

// record returns the record of the corrections that are counted under a key, and creates the record if necessary. If
// there are too many records, it discards the one that has not been used for the longest time.
func (f *FightDetector) record(key fightKey) *record {
	if r, found := f.records.Get(key); found {
		return r.(*record)
	}
	r := &record{}
	f.records.Add(key, r)
	return r
}
