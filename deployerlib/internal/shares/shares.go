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
	// healthCheckInterval is the interval at which the health of the targets is checked while items wait. The checks
	// are needed because no event reports that a target stalls or recovers.
	healthCheckInterval = 100 * time.Millisecond
	// slowAfterChecks is the number of intervals after which the run of an untried target no longer uses the extra
	// worker for untried targets.
	slowAfterChecks = 8
	// maxStalled is the maximum number of items that run without counting as workers, because their targets stall.
	maxStalled = 100
	// minWorkersForExtra is the smallest number of workers for which there are also extra workers.
	minWorkersForExtra = 4
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
	// OnWaitingChange is called with the difference when the number of waiting items changes. It may be nil. It must
	// not block.
	OnWaitingChange func(change int)
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
	options       Options
	extra         int // a third of the number of extra workers: 1 if there are three (see Options.Workers), otherwise 0
	maxPerTarget  int // the maximum number of workers for one target while items of other targets wait
	maxNotHealthy int // the maximum number of workers for all targets that are unhealthy or not yet known to be healthy
	maxSuspects   int // the maximum number of workers for all suspect targets together (see isSuspect)

	mu           sync.Mutex
	health       func(target types.NamespacedName) targets.Health // nil if all targets count as healthy
	held         map[types.NamespacedName]Place
	heldSince    map[types.NamespacedName]uint64 // the value of the field `healthChecks` when each item in the field `held` got its share
	healthChecks uint64                          // the number of intervals that have passed while items waited
	offered      map[types.NamespacedName]bool   // the items in the field `held` for which Acquire has yet to be called again
	toOffer      []types.NamespacedName          // the items in the field `offered` for which Options.Offer has yet to be called
	waiting      queue
	reported     int // the number of waiting items that was last reported to Options.OnWaitingChange
	proven       map[Place]bool
	failed       map[Place]bool // the targets that were unhealthy when the last reconcile of one of their items ended
	newestFirst  bool           // the untried target whose item arrived last is next; otherwise, the one whose item arrived first
	ticking      bool
	closed       bool
}

// New returns a Shares with the given options. No item holds a share yet.
func New(o Options) *Shares {
	s := &Shares{
		options: o, maxPerTarget: max(int(float64(o.Workers)*o.TargetShare), 1), maxNotHealthy: max(o.Workers/2, 1),
		held: map[types.NamespacedName]Place{}, heldSince: map[types.NamespacedName]uint64{}, offered: map[types.NamespacedName]bool{}, waiting: newQueue(), proven: map[Place]bool{}, failed: map[Place]bool{},
	}
	s.maxSuspects = (s.maxNotHealthy + 1) / 2
	if o.Workers >= minWorkersForExtra {
		s.extra = 1
	}
	return s
}

// MaxRunning returns the maximum number of items that run at a time, including the extra workers, and the items that do
// not count because their targets stall.
func (s *Shares) MaxRunning() int { return s.options.Workers + 3*s.extra + maxStalled }

// SetHealthFunc sets the function that returns the health of targets. Without such a function, all targets count as
// healthy.
func (s *Shares) SetHealthFunc(health func(target types.NamespacedName) targets.Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.health = health
}

// Acquire requests a share (the right to use one worker) for an item, and reports whether the item may run now. If so,
// the caller must call Release later. Otherwise the item waits: Options.Offer is called as soon as the item gets a
// share, and Acquire must then be called again.
func (s *Shares) Acquire(item types.NamespacedName, claim Claim) (taken bool) {
	s.withLock(func() {
		if s.offered[item] && s.held[item] != claim.Place {
			s.removeShare(item) // the target of the item has changed
		}
		if _, holds := s.held[item]; !holds {
			s.waiting.add(item, claim)
			s.allocateShares()
		}
		if _, taken = s.held[item]; taken {
			delete(s.offered, item)
			s.toOffer = slices.DeleteFunc(s.toOffer, func(other types.NamespacedName) bool { return other == item })
		}
	})
	return taken
}

// Release gives back the share that an item holds. If the item holds no share, Release removes the item from the
// waiting items.
func (s *Shares) Release(item types.NamespacedName) {
	s.withLock(func() {
		if place, holds := s.held[item]; holds && !s.offered[item] {
			s.recordHealth(place)
		}
		s.removeShare(item)
		s.waiting.remove(item)
		s.allocateShares()
	})
}

// NumWaiting returns the number of waiting items.
func (s *Shares) NumWaiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting.len()
}

// Close stops the checks of the health of targets and reports to Options.OnWaitingChange that no item waits.
func (s *Shares) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.updateWaiting()
}

// updateWaiting calls Options.OnWaitingChange. The caller holds the lock.
func (s *Shares) updateWaiting() {
	waiting := s.waiting.len()
	if s.closed {
		waiting = 0
	}
	if change := waiting - s.reported; change != 0 && s.options.OnWaitingChange != nil {
		s.options.OnWaitingChange(change)
	}
	s.reported = waiting
}

// withLock calls f while holding the lock. Then it releases the lock and calls Options.Offer for the items that got a
// share.
func (s *Shares) withLock(f func()) {
	s.mu.Lock()
	f()
	offers := s.toOffer
	s.toOffer = nil
	s.updateWaiting()
	s.startHealthTimer()
	s.mu.Unlock()
	for _, item := range offers {
		s.options.Offer(item)
	}
}

// startHealthTimer checks the health of the targets again after the interval `healthCheckInterval`, as long as items
// wait.
func (s *Shares) startHealthTimer() {
	if s.ticking || s.closed || s.health == nil || s.waiting.len() == 0 {
		return
	}
	s.ticking = true
	s.options.After(healthCheckInterval, func() {
		s.withLock(func() {
			s.ticking = false
			s.healthChecks++
			s.allocateShares()
		})
	})
}

func (s *Shares) removeShare(item types.NamespacedName) {
	delete(s.held, item)
	delete(s.heldSince, item)
	delete(s.offered, item)
}

// recordHealth records the health of a target after a reconcile of one of its items. As long as the target has not sent
// a complete response, its health is unknown. In this case, recordHealth only removes the target from s.proven.
func (s *Shares) recordHealth(place Place) {
	if !s.hasHealth(place) {
		return
	}
	now, before := s.proven, s.failed
	switch s.readHealth(place) {
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
