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
	// lookAgain is the interval at which the health of the targets is checked while items wait. The checks are needed
	// because no event reports that a target stalls or recovers.
	lookAgain = 100 * time.Millisecond
	// slowAfter is the number of intervals after which the run of an untried target no longer uses the extra worker for
	// untried targets.
	slowAfter = 8
	// spare is the maximum number of items that run without counting as workers, because their targets stall.
	spare = 100
	// fewWorkers is the smallest number of workers for which there are also extra workers.
	fewWorkers = 4
	// maxKnown is the maximum size of each of the maps `proven` and `failed`, which store the last known health of
	// targets. When a target is added to a full map, the map is emptied first.
	maxKnown = 10_000
)

// Options configures Shares.
type Options struct {
	// Workers is the number of items that may run at a time. An item whose unproven or unhealthy target stalls does not
	// count, and neither does a slow item of an untried target that exceeds the limits, for up to 100 items. If Workers
	// is at least 4, there are three extra workers. The first extra worker only runs an item of a namespace in which no
	// other item runs. The second extra worker is used only while the items of a target use more than TargetShare, and
	// only for an item of another target. The third one only runs an item of an untried target.
	Workers int
	// TargetShare is the maximum share of the workers that the items of one target may use while items of other targets
	// wait.
	TargetShare float64
	// After calls f in a new goroutine after the delay d.
	After func(d time.Duration, f func())
	// Offer is called for an item that waited and may now run. Offer adds the item to the queue of the controller.
	Offer func(item types.NamespacedName)
	// Waits is called with the difference when the number of waiting items changes. It may be nil. It must not block.
	Waits func(change int)
}

// Place is the namespace and target of an item.
type Place struct {
	Namespace string
	// Target is empty if the item has no target.
	Target string
}

// Claim is a request for one share, which is the right of an item to use one worker. It contains the place and the
// priority of that item.
type Claim struct {
	Place    Place
	Priority int // orders the items of a place; the highest comes first
}

// Shares decides which items may run. It is safe for concurrent use.
type Shares struct {
	options   Options
	extra     int // a third of the number of extra workers: 1 if there are three (see Options.Workers), otherwise 0
	perTarget int // the maximum number of workers for one target while items of other targets wait
	doubtful  int // the maximum number of workers for all targets that are unhealthy or not yet known to be healthy
	suspects  int // the maximum number of workers for all suspect targets together (see isSuspect)

	mu      sync.Mutex
	health  func(target types.NamespacedName) targets.Health // nil if all targets count as healthy
	held    map[types.NamespacedName]Place
	since   map[types.NamespacedName]uint64 // the value of the field `looks` when each item in the field `held` got its share
	looks   uint64                          // the number of intervals that have passed while items waited
	offered map[types.NamespacedName]bool   // the items in the field `held` for which Take has yet to be called again
	fresh   []types.NamespacedName          // the items in the field `offered` for which Options.Offer has yet to be called
	waiting queue
	told    int // the number of waiting items that was last reported to Waits
	proven  map[Place]bool
	failed  map[Place]bool // the targets that were unhealthy when the last reconcile of one of their items ended
	newest  bool           // the untried target whose item arrived last is next; otherwise, the one whose item arrived first
	ticking bool
	closed  bool
}

// New returns a Shares with the given options. No item holds a share yet.
func New(o Options) *Shares {
	s := &Shares{
		options: o, perTarget: max(int(float64(o.Workers)*o.TargetShare), 1), doubtful: max(o.Workers/2, 1),
		held: map[types.NamespacedName]Place{}, since: map[types.NamespacedName]uint64{}, offered: map[types.NamespacedName]bool{}, waiting: newQueue(), proven: map[Place]bool{}, failed: map[Place]bool{},
	}
	s.suspects = (s.doubtful + 1) / 2
	if o.Workers >= fewWorkers {
		s.extra = 1
	}
	return s
}

// Workers returns the maximum number of items that run at a time, including the extra workers, and the items that do
// not count because their targets stall.
func (s *Shares) Workers() int { return s.options.Workers + 3*s.extra + spare }

// Judge sets the function that returns the health of targets. Without such a function, all targets count as healthy.
func (s *Shares) Judge(health func(target types.NamespacedName) targets.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = health
}

// Take requests a share (the right to use one worker) for an item, and reports whether the item may run now. If so, the
// caller must call Return later. Otherwise the item waits: Options.Offer is called as soon as the item gets a share,
// and Take must then be called again.
func (s *Shares) Take(item types.NamespacedName, claim Claim) (taken bool) {
	s.change(func() {
		if s.offered[item] && s.held[item] != claim.Place {
			s.drop(item) // the target of the item has changed
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

// Return gives back the share that an item holds. If the item holds no share, Return removes the item from the waiting
// items.
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

// change calls f while holding the lock. Then it releases the lock and calls Options.Offer for the items that got a
// share.
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

// tick checks the health of the targets again after the interval `lookAgain`, as long as items wait.
func (s *Shares) tick() {
	if s.ticking || s.closed || s.health == nil || s.waiting.len() == 0 {
		return
	}
	s.ticking = true
	s.options.After(lookAgain, func() {
		s.change(func() {
			s.ticking = false
			s.looks++
			s.grant()
		})
	})
}

func (s *Shares) drop(item types.NamespacedName) {
	delete(s.held, item)
	delete(s.since, item)
	delete(s.offered, item)
}

// learn records the health of a target after a reconcile of one of its items. As long as the target has not sent a
// complete response, its health is unknown. In this case, learn only removes the target from s.proven.
func (s *Shares) learn(place Place) {
	if !s.isJudged(place) {
		return
	}
	now, before := s.proven, s.failed
	switch s.ask(place) {
	case targets.HealthGood:
	case targets.HealthStalled: // nothing is known yet about the request in progress
		return
	case targets.HealthBad:
		now, before = s.failed, s.proven
	case targets.HealthUnknown:
		delete(s.proven, place)
		return
	}
	delete(before, place)
	if len(now) >= maxKnown {
		clear(now)
	}
	now[place] = true
}
