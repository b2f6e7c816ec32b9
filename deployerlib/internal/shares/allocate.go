// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// usage contains the numbers of shares that are currently held. A share is the right of an item to use one worker.
type usage struct {
	namespaces   map[string]int
	places       map[Place]int
	notHealthy   int                      // number of counted shares held for targets that are unhealthy or not yet known to be healthy
	notHealthyIn map[string]int           // the shares that the field `notHealthy` counts, by namespace
	untried      int                      // the shares that the field `notHealthy` counts for untried targets, without slow runs
	suspects     int                      // number of shares held for suspect targets (see isSuspect), counted or not
	total        int                      // number of counted shares
	stalled      int                      // number of shares that are not counted, because their targets stall or their runs are slow
	stalledIn    map[string]int           // the shares that the field `stalled` counts, by namespace
	exceedsShare bool                     // whether a target uses more workers than TargetShare allows
	health       map[Place]targets.Health // the health of each target
}

// allocateShares gives shares (the right to use one worker) to waiting items as long as shares are available.
func (s *Shares) allocateShares() {
	if s.waiting.len() == 0 || len(s.held) >= s.MaxRunning() {
		return
	}
	use := s.countUsage()
	for use.total < s.getLimit(use)+2*s.extra {
		next, found := s.findNext(use)
		if !found {
			return
		}
		if s.isUntried(next.Place, use) {
			s.newestFirst = !s.newestFirst
		}
		s.waiting.remove(next.item)
		s.held[next.item], s.offered[next.item] = next.Place, true
		s.heldSince[next.item] = s.healthChecks
		s.toOffer = append(s.toOffer, next.item)
		s.addShare(use, next.Place, false)
	}
}

// countUsage counts the held shares, based on the current health of the targets.
func (s *Shares) countUsage() *usage {
	use := &usage{namespaces: map[string]int{}, places: map[Place]int{}, notHealthyIn: map[string]int{}, stalledIn: map[string]int{}, health: map[Place]targets.Health{}}
	var slow []Place
	for item, place := range s.held {
		if s.healthChecks-s.heldSince[item] >= slowAfterChecks && s.isUntried(place, use) {
			slow = append(slow, place)
			continue
		}
		s.addShare(use, place, false)
	}
	for _, place := range slow {
		s.addShare(use, place, true) // after the others, because it depends on the limits that these use up
	}
	return use
}

// addShare adds a share to the usage. A share of a target that stalls is not counted as a worker, because its run only
// waits for a response. A slow run is one of an untried target that began a while ago. It is not counted if it exceeds
// the limits, so that the extra worker for untried targets is free again.
func (s *Shares) addShare(use *usage, place Place, slow bool) {
	use.namespaces[place.Namespace]++
	use.places[place]++
	health := s.getHealth(place, use)
	if s.isSuspect(place, health) {
		use.suspects++
	}
	waits := isStalled(health) || slow && (use.total >= s.getLimit(use) || s.isFull(place, use, 0))
	if waits && use.stalled < maxStalled && use.stalledIn[place.Namespace] < maxStalled/2 {
		use.stalled++
		use.stalledIn[place.Namespace]++
		return
	}
	use.total++
	use.exceedsShare = use.exceedsShare || place.Target != "" && use.places[place] > s.maxPerTarget
	if health != targets.HealthGood {
		use.notHealthy++
		use.notHealthyIn[place.Namespace]++
	}
	if !slow && s.isUntried(place, use) {
		use.untried++
	}
}

// findNext returns the waiting item that gets the next share. It returns false if no item may have a share.
func (s *Shares) findNext(use *usage) (next ticket, found bool) {
	for place, line := range s.waiting.lines {
		if (!found || s.compare(use, line[0], next) < 0) && s.isAllowed(place, use) {
			next, found = line[0], true
		}
	}
	return next, found
}

// compare compares two tickets. Each is the first ticket of its place, which is a namespace and a target. The result is
// negative if the item of ticket a gets a share before the item of ticket b.
func (s *Shares) compare(u *usage, a, b ticket) int {
	return cmp.Or(
		cmp.Compare(u.namespaces[a.Place.Namespace], u.namespaces[b.Place.Namespace]),
		cmp.Compare(s.getRank(u, a.Place), s.getRank(u, b.Place)),
		cmp.Compare(u.places[a.Place], u.places[b.Place]),
		s.compareUntried(u, a, b),
		compareTickets(a, b),
	)
}

// getRank returns 1 for a suspect target, whose items run after all others of the namespaces that use as many workers.
func (s *Shares) getRank(u *usage, place Place) int {
	if s.isSuspect(place, s.getHealth(place, u)) {
		return 1
	}
	return 0
}

// compareUntried compares two tickets. Every second time that an untried target gets a share, untried targets go first,
// and of these the one whose item arrived last, so that it does not wait for many others that arrived earlier.
func (s *Shares) compareUntried(u *usage, a, b ticket) int {
	if !s.newestFirst {
		return 0
	}
	arrival := func(t ticket) uint64 {
		if s.isUntried(t.Place, u) {
			return t.number
		}
		return 0
	}
	return cmp.Compare(arrival(b), arrival(a))
}

// isAllowed reports whether a place may hold one more share.
func (s *Shares) isAllowed(place Place, use *usage) bool {
	if !s.hasWorker(place, use) {
		return false
	}
	if place.Target == "" {
		return true
	}
	health := s.getHealth(place, use)
	if health == targets.HealthGood {
		return use.places[place] < s.maxPerTarget || s.isIdle(use)
	}
	if s.isSuspect(place, health) && use.suspects >= s.maxSuspects {
		return false
	}
	reserve := 0
	if use.untried == 0 && s.isUntried(place, use) {
		reserve = s.extra
	}
	return use.places[place] == 0 && !s.isFull(place, use, reserve)
}

// isFull reports whether targets that are unhealthy or not yet known to be healthy, all together or those of the
// namespace of a place, use all workers that they may use, and as many more as the parameter `reserve` says.
func (s *Shares) isFull(place Place, use *usage, reserve int) bool {
	return use.notHealthy >= s.maxNotHealthy+reserve || use.notHealthyIn[place.Namespace] >= (s.maxNotHealthy+1)/2+reserve
}

// hasWorker reports whether a worker is free for an item of a place. An extra worker is only for a namespace that uses
// no other worker, and another one only for an untried target.
func (s *Shares) hasWorker(place Place, use *usage) bool {
	limit := s.getLimit(use)
	if use.total < limit {
		return true
	}
	forNamespace := use.namespaces[place.Namespace] == 0 && use.total < limit+s.extra
	return forNamespace || use.untried == 0 && s.isUntried(place, use)
}

// isIdle reports whether enough workers are idle for a target to use more workers than Options.TargetShare allows. This
// is the case if there are extra workers (see Options.Workers), a worker that is not an extra worker is free, and all
// waiting items have the same namespace and target.
func (s *Shares) isIdle(use *usage) bool {
	return s.extra > 0 && len(s.waiting.lines) == 1 && use.total < s.options.Workers
}

// getLimit returns the number of workers that items of any namespace may use. If there are two extra workers (see
// Options.Workers), limit never counts the first one. It counts the second one only while a target uses more workers
// than Options.TargetShare allows.
func (s *Shares) getLimit(use *usage) int {
	if use.exceedsShare {
		return s.options.Workers + s.extra
	}
	return s.options.Workers
}

// getHealth returns the health of a target. A healthy target counts as unproven until a reconcile of one of its items
// has ended.
func (s *Shares) getHealth(place Place, use *usage) targets.Health {
	health, asked := use.health[place]
	if !asked {
		health = s.readHealth(place)
		switch {
		case health == targets.HealthGood && s.hasHealth(place) && !s.proven[place]:
			health = targets.HealthUnknown
		case health == targets.HealthStalled && s.proven[place]:
			health = targets.HealthGood // a proven target may be slow
		}
		use.health[place] = health
	}
	return health
}

// isStalled reports whether a run on a target with this health only waits: the target does not complete its responses,
// or is unavailable, so that the run ends soon.
func isStalled(health targets.Health) bool {
	return health == targets.HealthStalled || health == targets.HealthBad
}

// isUntried reports whether a target has neither been proven nor been unhealthy so far.
func (s *Shares) isUntried(place Place, use *usage) bool {
	health := s.getHealth(place, use)
	return health != targets.HealthGood && !s.isSuspect(place, health)
}

// isSuspect reports whether a target is unhealthy, or was unhealthy when the last reconcile of one of its items ended.
func (s *Shares) isSuspect(place Place, health targets.Health) bool {
	return health == targets.HealthBad || s.failed[place]
}

func (s *Shares) readHealth(place Place) targets.Health {
	if !s.hasHealth(place) {
		return targets.HealthGood
	}
	return s.health(types.NamespacedName{Namespace: place.Namespace, Name: place.Target})
}

func (s *Shares) hasHealth(place Place) bool { return s.health != nil && place.Target != "" }
