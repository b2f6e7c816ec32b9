// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// usage contains the numbers of shares that are currently held. A share is the right of an item to use one worker.
type usage struct {
	namespaces map[string]int
	places     map[Place]int
	doubtful   int            // number of shares held for targets that are unhealthy or not yet known to be healthy
	doubtfulIn map[string]int // the shares that the field `doubtful` counts, by namespace
	suspects   int            // number of shares held for suspect targets (see isSuspect)
	total      int
	lent       bool                     // whether a target uses more workers than TargetShare allows
	health     map[Place]targets.Health // the health of each target
}

// grant gives shares (the right to use one worker) to waiting items as long as shares are available.
func (s *Shares) grant() {
	if s.waiting.len() == 0 || len(s.held) >= s.Workers() {
		return
	}
	use := s.usage()
	for use.total < s.limit(use)+s.extra {
		next, found := s.best(use)
		if !found {
			return
		}
		s.waiting.remove(next.item)
		s.held[next.item], s.offered[next.item] = next.Place, true
		s.fresh = append(s.fresh, next.item)
		s.count(use, next.Place)
	}
}

// usage counts the held shares, based on the current health of the targets.
func (s *Shares) usage() *usage {
	use := &usage{namespaces: map[string]int{}, places: map[Place]int{}, doubtfulIn: map[string]int{}, health: map[Place]targets.Health{}}
	for _, place := range s.held {
		s.count(use, place)
	}
	return use
}

func (s *Shares) count(use *usage, place Place) {
	use.namespaces[place.Namespace]++
	use.places[place]++
	use.total++
	use.lent = use.lent || place.Target != "" && use.places[place] > s.perTarget
	if health := s.healthOf(place, use); health != targets.HealthGood {
		use.doubtful++
		use.doubtfulIn[place.Namespace]++
		if s.isSuspect(place, health) {
			use.suspects++
		}
	}
}

// best returns the waiting item that gets the next share. It returns false if no item may have a share.
func (s *Shares) best(use *usage) (next ticket, found bool) {
	for place, line := range s.waiting.lines {
		if (!found || use.compare(line[0], next) < 0) && s.mayHave(place, use) {
			next, found = line[0], true
		}
	}
	return next, found
}

// compare compares two tickets. Each is the first ticket of its place, which is a namespace and a target. The result is
// negative if the item of ticket a gets a share before the item of ticket b.
func (u *usage) compare(a, b ticket) int {
	return cmp.Or(
		cmp.Compare(u.namespaces[a.Place.Namespace], u.namespaces[b.Place.Namespace]),
		cmp.Compare(u.places[a.Place], u.places[b.Place]),
		compare(a, b),
	)
}

// mayHave reports whether a place may hold one more share.
func (s *Shares) mayHave(place Place, use *usage) bool {
	if use.namespaces[place.Namespace] > 0 && use.total >= s.limit(use) {
		return false
	}
	if place.Target == "" {
		return true
	}
	health := s.healthOf(place, use)
	if health == targets.HealthGood {
		return use.places[place] < s.perTarget || s.isIdle(use)
	}
	if s.isSuspect(place, health) && use.suspects >= s.suspects {
		return false
	}
	return use.places[place] == 0 && use.doubtful < s.doubtful && use.doubtfulIn[place.Namespace] < (s.doubtful+1)/2
}

// isIdle reports whether enough workers are idle for a target to use more workers than Options.TargetShare allows. This
// is the case if there are extra workers (see Options.Workers), a worker that is not an extra worker is free, and all
// waiting items have the same namespace and target.
func (s *Shares) isIdle(use *usage) bool {
	return s.extra > 0 && len(s.waiting.lines) == 1 && use.total < s.options.Workers
}

// limit returns the number of workers that items of any namespace may use. If there are two extra workers (see
// Options.Workers), limit never counts the first one. It counts the second one only while a target uses more workers
// than Options.TargetShare allows.
func (s *Shares) limit(use *usage) int {
	if use.lent {
		return s.options.Workers + s.extra
	}
	return s.options.Workers
}

// healthOf returns the health of a target. A healthy target counts as unproven until a reconcile of one of its items
// has ended.
func (s *Shares) healthOf(place Place, use *usage) targets.Health {
	health, asked := use.health[place]
	if !asked {
		health = s.ask(place)
		if health == targets.HealthGood && s.isJudged(place) && !s.proven[place] {
			health = targets.HealthUnproven
		}
		use.health[place] = health
	}
	return health
}

// isSuspect reports whether a target is unhealthy, or was unhealthy when the last reconcile of one of its items ended.
func (s *Shares) isSuspect(place Place, health targets.Health) bool {
	return health == targets.HealthBad || s.failed[place]
}

func (s *Shares) ask(place Place) targets.Health {
	if !s.isJudged(place) {
		return targets.HealthGood
	}
	return s.health(types.NamespacedName{Namespace: place.Namespace, Name: place.Target})
}

func (s *Shares) isJudged(place Place) bool { return s.health != nil && place.Target != "" }
