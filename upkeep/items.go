// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// items is what is known about deploy items in memory. Losing it only costs reads.
type items struct {
	// These fields are set before the first item.
	clock   clock.WithDelayedExecution
	trigger func(types.NamespacedName)

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
		key := client.ObjectKeyFromObject(di)
		it = &item{key: key, clock: s.clock, trigger: func() { s.trigger(key) }, ready: map[apply.Ref]readyAt{}, since: map[string]time.Time{}, applied: &apply.Applied{}, values: map[any]any{}}
		it.throttle = newThrottle(s.clock, it.trigger)
		s.all[di.UID] = it
	}
	return it
}

// find returns what is known about an item, or nil if the item is not known.
func (s *items) find(uid types.UID) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// keys returns all items that are known.
func (s *items) keys() map[types.UID]types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.UID]types.NamespacedName, len(s.all))
	for uid, it := range s.all {
		out[uid] = it.key
	}
	return out
}

// forget removes the memory of an item.
func (s *items) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.all[uid]; it != nil {
		it.stopFollowing()
		it.stopLooking()
		it.sleep()
		it.end()
	}
	delete(s.all, uid)
}

// item is the memory of one item. The library runs one call at a time for an item. Events come at any time, and a
// call may use several goroutines.
type item struct {
	key      types.NamespacedName
	clock    clock.WithDelayedExecution
	trigger  func()      // asks the library to look at the item
	searched atomic.Bool // whether objects were searched by label because there was no inventory
	throttle *throttle   // of events that wake the item while it waits

	mu      sync.Mutex
	ready   map[apply.Ref]readyAt // when objects were ready
	run     string                // the run that since belongs to
	since   map[string]time.Time  // when a step began to wait
	applied *apply.Applied        // in this run
	refused bool                  // the target refused the credentials once in this run
	wants   wants                 // the queued triggers of the next runs
	alarm   alarm                 // for the first trigger
	follow  func()                // stops following changes; nil if nothing waits
	cleanUp time.Duration         // the last pause between two attempts to clean up former clusters
	lookout *lookout              // watches what a waiting step looked at; nil if nothing waits

	valuesMu sync.Mutex
	values   map[any]any // remembered by the deployer
}

// readyAt identifies the state of an object in which it was ready.
type readyAt struct {
	uid     types.UID
	version string
}

// wasReady returns the state in which an object was last ready.
func (i *item) wasReady(ref apply.Ref) readyAt {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ready[ref]
}

func (i *item) setReady(ref apply.Ref, at readyAt) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ready[ref] = at
}

// keepReady forgets objects that are no longer in the inventory.
func (i *item) keepReady(inventory apply.Inventory) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.ready) <= len(inventory.Entries) {
		return
	}
	kept := map[apply.Ref]readyAt{}
	for _, entry := range inventory.Entries {
		if at, known := i.ready[entry.Ref()]; known {
			kept[entry.Ref()] = at
		}
	}
	i.ready = kept
}

// value returns what a deployer remembers under a key, and creates it if there is nothing.
func (i *item) value(key any, create func() any) any {
	i.valuesMu.Lock()
	defer i.valuesMu.Unlock()
	value, known := i.values[key]
	if !known {
		value = create()
		i.values[key] = value
	}
	return value
}

// end informs the values that they are forgotten.
func (i *item) end() {
	i.valuesMu.Lock()
	defer i.valuesMu.Unlock()
	for _, value := range i.values {
		if one, ok := value.(interface{ Forgotten() }); ok {
			one.Forgotten()
		}
	}
}

// startFollowing calls begin unless the item already follows changes. It reports whether it called begin.
func (i *item) startFollowing(begin func() (stop func())) (began bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.follow != nil {
		return false
	}
	i.follow = begin()
	return true
}

// waits reports whether events already wake the item.
func (i *item) waits() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.follow != nil
}

func (i *item) stopFollowing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.follow != nil {
		i.follow()
		i.follow = nil
		i.throttle.stop()
	}
}

// begin forgets how long steps of an earlier run waited, and what that run applied.
func (i *item) begin(run string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.run != run {
		i.run, i.since, i.refused, i.applied = run, map[string]time.Time{}, false, &apply.Applied{}
	}
}

// beginAnew forgets what was applied, before a run that has the same ID as the previous one.
func (i *item) beginAnew() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.applied = &apply.Applied{}
}

// waited returns how long a step has been waiting in this run.
func (i *item) waited(step string, now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.since[step].IsZero() {
		i.since[step] = now
	}
	return now.Sub(i.since[step])
}

// refuse records that the target refused the credentials. It reports whether the target already did so in this run.
func (i *item) refuse() (before bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, i.refused = i.refused, true
	return before
}

// appliedInRun returns what the item's run has applied so far.
func (i *item) appliedInRun() *apply.Applied {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.applied
}

// ended forgets how long steps waited, and what for.
func (i *item) ended() {
	i.mu.Lock()
	i.since, i.refused = map[string]time.Time{}, false
	i.mu.Unlock()
	i.stopLooking()
}

// stopLooking ends the watches on what a step looked at.
func (i *item) stopLooking() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.lookout != nil {
		i.lookout.stop()
		i.lookout = nil
	}
}
