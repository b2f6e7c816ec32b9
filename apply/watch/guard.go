// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"container/list"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// GuardOptions of a Guard. The zero value is ready to use.
type GuardOptions struct {
	// Heals of the same field within Window from which on it is a fight. Zero: 3.
	Heals int
	// Window in which heals are counted. Zero: 5 min.
	Window time.Duration
	// FirstDelay before the heal that makes it a fight; each further one doubles it. Zero: 10 s.
	FirstDelay time.Duration
	// MaxDelay is the longest. Zero: 10 min.
	MaxDelay time.Duration
	// MaxEntries bounds the memory; what was healed longest ago is forgotten. Zero: 10 000, some 3 MB.
	MaxEntries int
	// Clock tells the time. nil: the real one.
	Clock clock.PassiveClock
}

func (o GuardOptions) withDefaults() GuardOptions {
	if o.Heals == 0 {
		o.Heals = 3
	}
	if o.Window == 0 {
		o.Window = 5 * time.Minute
	}
	if o.FirstDelay == 0 {
		o.FirstDelay = 10 * time.Second
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = 10 * time.Minute
	}
	if o.MaxEntries == 0 {
		o.MaxEntries = 10_000
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// Guard slows down a fight: somebody else, often a controller, changes a field again each time it was put right.
// It counts per object, field manager and field. It is safe for concurrent use.
type Guard struct {
	opts GuardOptions

	mu      sync.Mutex
	entries map[fight]*list.Element
	recent  *list.List // of *record, the one healed last in front
}

// fight is what is counted. It holds no UID: a controller that deletes and creates fights too.
type fight struct {
	item    types.UID // targets may have objects of the same name
	object  Object
	manager string
	field   string
}

type record struct {
	fight fight
	heals []time.Time // the last ones, at most as many as make a fight
	delay time.Duration
}

// NewGuard makes a Guard that has seen nothing.
func NewGuard(opts GuardOptions) *Guard {
	return &Guard{opts: opts.withDefaults(), entries: map[fight]*list.Element{}, recent: list.New()}
}

// Heal says how to heal a drift.
type Heal struct {
	// Delay before the heal. Zero: at once.
	Delay time.Duration
	// Fight: the same field was put right too often; tell people, naming Manager and Field.
	Fight bool
	// Manager and Field of the fight, as far as known.
	Manager, Field string
}

// Heal counts one heal of a drift and says how long to wait before it. A fight is over once there was nothing
// to heal for as long as the last delay and Window together.
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

// Len is how many fields are remembered.
func (g *Guard) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.recent.Len()
}

// fights are one per field that is known, else one per manager, else one for the kind of drift.
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

// record finds or makes a record, and forgets the oldest one if there are too many.
func (g *Guard) record(f fight) *record {
	if at := g.entries[f]; at != nil {
		g.recent.MoveToFront(at)
		return at.Value.(*record)
	}
	if g.recent.Len() >= g.opts.MaxEntries {
		oldest := g.recent.Back()
		delete(g.entries, oldest.Value.(*record).fight)
		g.recent.Remove(oldest)
	}
	r := &record{fight: f}
	g.entries[f] = g.recent.PushFront(r)
	return r
}
