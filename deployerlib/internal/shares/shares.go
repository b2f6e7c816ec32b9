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
	// lookAgain is the interval at which the health of the targets is checked while items wait, because the recovery of
	// a target does not free a share.
	lookAgain = 250 * time.Millisecond
	// fewWorkers is the number of workers below which there is no extra worker.
	fewWorkers = 4
	// maxKnown limits the number of targets that are remembered. If there are more, all of them count as new.
	maxKnown = 10_000
)

// Options configures Shares.
type Options struct {
	// Workers is the number of items that may run at a time. With four or more, one more may run if its namespace holds
	// no share.
	Workers int
	// TargetShare is the largest share of the workers that the items of one target hold while others wait.
	TargetShare float64
	// After calls f after a delay, in a goroutine of its own.
	After func(d time.Duration, f func())
	// Offer is called for an item that waited and now holds a share. It queues the item.
	Offer func(item types.NamespacedName)
	// Waits is called with the change of the number of waiting items. It may be nil. It must not block.
	Waits func(change int)
}

// Place is the namespace and target of an item.
type Place struct {
	Namespace string
	// Target is empty if the item has none.
	Target string
}

// Claim is a request of an item for a share.
type Claim struct {
	Place    Place
	Priority int // among the items of a place; the highest comes first
}

// Shares decides which items may run. It is safe for concurrent use.
type Shares struct {
	options   Options
	extra     int // workers besides Options.Workers, for namespaces that hold none
	perTarget int // workers for one target, while others wait
	doubtful  int // workers for all targets that are unhealthy or unproven
	suspects  int // of these, workers for targets that are not new

	mu      sync.Mutex
	health  func(target types.NamespacedName) targets.Health // if it is nil, all targets are healthy
	held    map[types.NamespacedName]Place
	offered map[types.NamespacedName]bool // subset of held: not taken yet
	fresh   []types.NamespacedName        // subset of offered: Offer was not called yet
	waiting queue
	told    int // the part of waiting that was reported to Waits
	proven  map[Place]bool
	failed  map[Place]bool // unhealthy when an item had run to its end
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

// Workers returns the maximum number of items that run at a time, including the extra worker.
func (s *Shares) Workers() int { return s.options.Workers + s.extra }

// Judge sets the function that returns the health of targets. Without one, all targets are healthy.
func (s *Shares) Judge(health func(target types.NamespacedName) targets.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = health
}

// Take requests a share for an item and reports whether it may run now. If so, the caller must call Return later.
// Otherwise the item waits: Options.Offer is called as soon as there is a share for it, and Take must then be called
// again.
func (s *Shares) Take(item types.NamespacedName, claim Claim) (taken bool) {
	s.change(func() {
		if s.offered[item] && s.held[item] != claim.Place {
			s.drop(item) // its target has changed
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

// Return returns the share of an item, or removes it from the waiting items.
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

// Waiting returns the number of waiting items.
func (s *Shares) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.len()
}

// Close stops the checks of the health of targets and reports to Options.Waits that no item waits.
func (s *Shares) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.tell()
}

// tell calls Options.Waits. The caller holds the lock.
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

// change calls f under the lock, and then Offer for the items that got a share.
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

// tick repeats the check after a while as long as items wait.
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

// learn records whether a target responded while an item ran. A target that was not used yet stays new.
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
