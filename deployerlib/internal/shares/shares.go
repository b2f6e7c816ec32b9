// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

const (
	// lookAgain is the time between two looks at the health of the targets while items wait: a target that answers
	// again frees no share by that.
	lookAgain = 250 * time.Millisecond
	// fewWorkers get no extra one for namespaces that hold none.
	fewWorkers = 4
	// maxKnown bounds the memory for targets that answered, and for those that did not. When there are more, all of them
	// count as new.
	maxKnown = 10_000
)

// Options configure Shares.
type Options struct {
	// Workers is how many items run at a time. With four or more, one more may run, of a namespace that holds none.
	Workers int
	// TargetShare is the part of the workers that the items of one target hold at most while others wait.
	TargetShare float64
	// After calls f after a time, in a goroutine of its own.
	After func(d time.Duration, f func())
	// Offer is called for an item that waited and holds a share now. It queues the item.
	Offer func(item types.NamespacedName)
	// Waits is called with the change of the number of items that wait; nil is not called. It must not block.
	Waits func(change int)
}

// Place is what an item belongs to.
type Place struct {
	Namespace string
	// Target is empty for an item without one.
	Target string
}

// Claim is what an item asks a share for.
type Claim struct {
	Place    Place
	Priority int // among the items of a place; the highest goes first
}

// Shares decide which items may run. They are safe for concurrent use.
type Shares struct {
	options   Options
	extra     int // workers besides Options.Workers, for namespaces that hold none
	perTarget int // workers for one target, while others wait
	doubtful  int // workers for all targets that are not known to be good
	suspects  int // of these, workers for targets that are not new

	mu      sync.Mutex
	health  func(target types.NamespacedName) targets.Health // all are good if it is nil
	held    map[types.NamespacedName]Place
	offered map[types.NamespacedName]bool // of held: not taken yet
	fresh   []types.NamespacedName        // of offered: Offer was not called yet
	waiting queue
	told    int // of waiting: what Waits knows
	proven  map[Place]bool
	failed  map[Place]bool // bad when an item had run to its end
	ticking bool
	closed  bool
}

// New returns Shares that no item holds.
func New(o Options) *Shares {
	s := &Shares{
		options: o, perTarget: max(int(float64(o.Workers)*o.TargetShare), 1), doubtful: max(o.Workers/2, 1),
		held: map[types.NamespacedName]Place{}, offered: map[types.NamespacedName]bool{}, waiting: newQueue(), proven: map[Place]bool{}, failed: map[Place]bool{},
	}
	s.suspects = (s.doubtful + 1) / 2
	if o.Workers >= fewWorkers {
		s.extra = 1
	}
	return s
}

// Workers returns how many items run at a time at most, with the extra worker.
func (s *Shares) Workers() int { return s.options.Workers + s.extra }

// Judge sets the function that knows the health of targets. Without one, all targets are good.
func (s *Shares) Judge(health func(target types.NamespacedName) targets.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = health
}

// Take gives an item a share and reports whether it may run now; Return must follow. If it may not, the item waits:
// Options.Offer is called as soon as there is a share for it, and Take is to be called again then.
func (s *Shares) Take(item types.NamespacedName, claim Claim) (taken bool) {
	s.change(func() {
		if s.offered[item] && s.held[item] != claim.Place {
			s.drop(item) // its target is another one by now
		}
		if _, holds := s.held[item]; !holds {
			s.waiting.add(item, claim)
			s.grant()
		}
		if _, taken = s.held[item]; taken {
			delete(s.offered, item)
			s.fresh = slices.DeleteFunc(s.fresh, func(other types.NamespacedName) bool { return other == item })
		}
	})
	return taken
}

// Return gives the share of an item back, or ends its waiting.
func (s *Shares) Return(item types.NamespacedName) {
	s.change(func() {
		if place, holds := s.held[item]; holds && !s.offered[item] {
			s.learn(place)
		}
		s.drop(item)
		s.waiting.remove(item)
		s.grant()
	})
}

// Waiting is the number of items that wait.
func (s *Shares) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.len()
}

// Close ends the looks at the health of targets. For Options.Waits, no item waits after it.
func (s *Shares) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.tell()
}

// tell calls Options.Waits. The lock is held.
func (s *Shares) tell() {
	waiting := s.waiting.len()
	if s.closed {
		waiting = 0
	}
	if change := waiting - s.told; change != 0 && s.options.Waits != nil {
		s.options.Waits(change)
	}
	s.told = waiting
}

// change runs f under the lock, and calls Offer for those that got a share by it.
func (s *Shares) change(f func()) {
	s.mu.Lock()
	f()
	offers := s.fresh
	s.fresh = nil
	s.tell()
	s.tick()
	s.mu.Unlock()
	for _, item := range offers {
		s.options.Offer(item)
	}
}

// tick looks again after a while as long as items wait.
func (s *Shares) tick() {
	if s.ticking || s.closed || s.health == nil || s.waiting.len() == 0 {
		return
	}
	s.ticking = true
	s.options.After(lookAgain, func() {
		s.change(func() {
			s.ticking = false
			s.grant()
		})
	})
}

func (s *Shares) drop(item types.NamespacedName) {
	delete(s.held, item)
	delete(s.offered, item)
}

// learn notes whether a target answered while an item ran. One that was not asked yet stays new.
func (s *Shares) learn(place Place) {
	if !s.isJudged(place) {
		return
	}
	now, before := s.proven, s.failed
	switch s.ask(place) {
	case targets.HealthGood:
	case targets.HealthBad:
		now, before = s.failed, s.proven
	case targets.HealthUnproven:
		delete(s.proven, place)
		return
	}
	delete(before, place)
	if len(now) >= maxKnown {
		clear(now)
	}
	now[place] = true
}
