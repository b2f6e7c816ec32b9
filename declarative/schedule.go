// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"slices"
	"time"

	"github.com/deployerkit/deployerkit/apply"
)

// These are the times after which the handler is called even if no change was observed.
const (
	// pollObserved is the time after which the handler is called again for a waiting item whose children are all
	// watched.
	pollObserved = 30 * time.Second
	// pollPartly is the time after which the handler is called again for a waiting item if some of its children are not
	// watched.
	pollPartly = 5 * time.Second
	// pollUnobserved is the time after which the handler is called again for a finished item if some of its children
	// are not watched.
	pollUnobserved = time.Minute
)

// schedule determines when the handler is called again even if no change is observed. A zero duration means that there
// is no such time.
type schedule struct {
	resync          time.Duration // Options.Resync
	after           time.Duration // SyncResponse.ResyncAfter
	isPartlyWatched bool          // not all children are watched
}

// newSchedule returns the schedule after a response.
func (r *run) newSchedule(response *SyncResponse) schedule {
	return schedule{
		resync:          r.deployer.options.Resync,
		after:           r.deployer.limit.Apply(r.log, "SyncResponse.ResyncAfter", response.ResyncAfter),
		isPartlyWatched: slices.ContainsFunc(r.managed.Inventory.Entries, func(entry apply.Entry) bool { return r.unobserved[entry.Ref().GVK().GroupKind()] }),
	}
}

// next returns the time after which the handler is called again. It applies to finished and to waiting items.
func (s schedule) next() time.Duration {
	unobserved := time.Duration(0)
	if s.isPartlyWatched {
		unobserved = pollUnobserved
	}
	return minDelay(s.after, s.resync, unobserved)
}

// poll returns the time after which the handler is called again for a waiting item.
func (s schedule) poll() time.Duration {
	observed := pollObserved
	if s.isPartlyWatched {
		observed = pollPartly
	}
	return minDelay(s.after, observed)
}

// minDelay returns the shortest time that is greater than zero, or zero if there is none.
func minDelay(times ...time.Duration) time.Duration {
	first := time.Duration(0)
	for _, t := range times {
		if t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}
