// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// usage is the current number of held shares.
type usage struct {
	namespaces map[string]int
	places     map[Place]int
	doubtful   int            // of targets that are unhealthy or unproven
	doubtfulIn map[string]int // by namespace
	suspects   int            // of doubtful: their targets are not new
	total      int
	health     map[Place]targets.Health // cached per place
}

// grant gives shares to waiting items while there are any left.
func (s *Shares) grant() {
	if s.waiting.len() == 0 || len(s.held) >= s.Workers() {
		return
	}
	use := s.usage()
	for use.total < s.Workers() {
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

// usage counts the held shares, with the current health of the targets.
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
	if health := s.healthOf(place, use); health != targets.HealthGood {
		use.doubtful++
		use.doubtfulIn[place.Namespace]++
		if s.isSuspect(place, health) {
			use.suspects++
		}
	}
}

// best returns the next item. It returns false if no item may have a share.
func (s *Shares) best(use *usage) (next ticket, found bool) {
	for place, line := range s.waiting.lines {
		if (!found || use.compare(line[0], next) < 0) && s.mayHave(place, use) {
			next, found = line[0], true
		}
	}
	return next, found
}

// compare orders the first items of two lines.
func (u *usage) compare(a, b ticket) int {
	return cmp.Or(
		cmp.Compare(u.namespaces[a.Place.Namespace], u.namespaces[b.Place.Namespace]),
		cmp.Compare(u.places[a.Place], u.places[b.Place]),
		compare(a, b),
	)
}

// mayHave reports whether a place may hold one more share.
func (s *Shares) mayHave(place Place, use *usage) bool {
	if use.namespaces[place.Namespace] > 0 && use.total >= s.options.Workers {
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

// isIdle reports whether a worker is left for another target if the only waiting place takes one more.
func (s *Shares) isIdle(use *usage) bool {
	return s.extra > 0 && len(s.waiting.lines) == 1 && use.total < s.options.Workers-1
}

// healthOf returns the health of a target. A target of which no item has run to its end is unproven.
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

// isSuspect reports whether a target is unhealthy, or was unhealthy when an item of it had run to its end.
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
