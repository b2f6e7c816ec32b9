// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// maxDrifts bounds what is remembered of an item's drift until it is healed.
const maxDrifts = 8

// items is what the deployer knows about deploy items in memory. Losing it
// costs reads, nothing else.
type items struct {
	mu  sync.Mutex
	all map[types.UID]*item
}

func newItems() *items { return &items{all: map[types.UID]*item{}} }

// get returns what is known about an item.
func (s *items) get(di *lsv1alpha1.DeployItem) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.all[di.UID]
	if it == nil {
		it = &item{key: client.ObjectKeyFromObject(di), ready: map[apply.Ref]string{}, since: map[string]time.Time{}}
		s.all[di.UID] = it
	}
	return it
}

// find is get for an item that is known already; nil if it is not.
func (s *items) find(uid types.UID) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// keys are all items that are known.
func (s *items) keys() map[types.UID]types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.UID]types.NamespacedName, len(s.all))
	for uid, it := range s.all {
		out[uid] = it.key
	}
	return out
}

// forget ends the memory of an item.
func (s *items) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.all[uid]; it != nil {
		it.stopFollowing()
		it.stopLooking()
	}
	delete(s.all, uid)
}

// item is the memory of one item. The library runs one call at a time for an
// item; events come at any time.
type item struct {
	key types.NamespacedName

	// Used by calls only.
	ready map[apply.Ref]string // resourceVersions at which objects were ready
	run   string               // which run since belongs to
	since map[string]time.Time // when a step began to wait
	// refused: the target refused the credentials once in this run.
	refused bool

	mu       sync.Mutex
	thorough bool      // the next run asks for every object
	drifts   []drift   // not healed yet
	heal     time.Time // not before
	follow   func()    // ends the following of changes; nil when nobody waits
	lookout  *lookout  // watches what a waiting step looked at; nil when nobody waits
}

// setThorough says whether the next run asks for every object, whatever the watches know.
func (i *item) setThorough(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.thorough = on
}

// takeThorough tells whether this run asks for every object.
func (i *item) takeThorough() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	thorough := i.thorough
	i.thorough = false
	return thorough
}

// drifted notes a drift. A fight is healed later.
func (i *item) drifted(d drift, notBefore time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.drifts) < maxDrifts {
		i.drifts = append(i.drifts, d)
	}
	if notBefore.After(i.heal) {
		i.heal = notBefore
	}
}

// toHeal tells whether there is something to heal, and when.
func (i *item) toHeal() (bool, time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.drifts) > 0, i.heal
}

// takeDrifts returns what a run is about to heal.
func (i *item) takeDrifts() []drift {
	i.mu.Lock()
	defer i.mu.Unlock()
	drifts := i.drifts
	i.drifts, i.heal = nil, time.Time{}
	return drifts
}

// putBack notes again what a run wanted to do and could not.
func (i *item) putBack(drifts []drift, thorough bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.drifts = append(drifts, i.drifts...)
	i.drifts = i.drifts[:min(len(i.drifts), maxDrifts)]
	i.thorough = i.thorough || thorough
}

// startFollowing calls begin unless it runs already.
func (i *item) startFollowing(begin func() (stop func())) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.follow == nil {
		i.follow = begin()
	}
}

func (i *item) stopFollowing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.follow != nil {
		i.follow()
		i.follow = nil
	}
}

// waited is how long a step has been waiting in this run.
func (i *item) waited(step string, now time.Time) time.Duration {
	if i.since[step].IsZero() {
		i.since[step] = now
	}
	return now.Sub(i.since[step])
}

// ended forgets how long steps waited, and what for.
func (i *item) ended() {
	i.since, i.refused = map[string]time.Time{}, false
	i.stopLooking()
}

// stopLooking ends the watches for what a step looked at.
func (i *item) stopLooking() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lookout != nil {
		i.lookout.stop()
		i.lookout = nil
	}
}

// begin forgets how long steps of an earlier run waited.
func (i *item) begin(run string) {
	if i.run != run {
		i.run, i.since, i.refused = run, map[string]time.Time{}, false
	}
}
