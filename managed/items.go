// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"sync"
	"sync/atomic"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
)

// items stores data about deploy items in memory. If the data is lost, the only consequence is additional reads.
type items struct {
	// These fields must be set before the first item is added.
	clock   clock.WithDelayedExecution
	trigger func(types.NamespacedName)

	mu  sync.Mutex
	all map[types.UID]*item
}

func newItems() *items { return &items{all: map[types.UID]*item{}} }

// get returns the data about a DeployItem. It adds the item if it is not known.
func (s *items) get(di *lsv1alpha1.DeployItem) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	it := s.all[di.UID]
	if it == nil {
		key := client.ObjectKeyFromObject(di)
		it = &item{
			key: key, triggers: observe.NewTriggers(s.clock, func() { s.trigger(key) }), applied: &apply.Applied{},
		}
		s.all[di.UID] = it
	}
	return it
}

// find returns the item with a UID, or nil if the item is not known.
func (s *items) find(uid types.UID) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// listKeys returns the UIDs and names of all known items.
func (s *items) listKeys() map[types.UID]types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[types.UID]types.NamespacedName, len(s.all))
	for uid, it := range s.all {
		out[uid] = it.key
	}
	return out
}

// forget removes an item from memory.
func (s *items) forget(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if it := s.all[uid]; it != nil {
		it.stopFollowing()
		it.stopSubscriptions()
		it.triggers.Clear()
		it.values.notifyForgotten()
	}
	delete(s.all, uid)
}

// item contains the data about one deploy item. The library runs only one call at a time for an item. However, events
// may occur at any time, and a call may use several goroutines. The methods are therefore safe for concurrent use.
type item struct {
	key      types.NamespacedName
	triggers *observe.Triggers // decides when the item runs next
	searched atomic.Bool       // the inventory was lost, and the objects were searched by label
	searches atomic.Int32      // the number of searches in a row that failed for a temporary reason
	ready    readyVersions
	values   valueStore
	// foreign contains the objects with the item's marks that do not belong to it
	foreign foreignObjects

	mu           sync.Mutex
	run          uint64               // the ID of the run to which the fields since, applied and refused belong
	waitingSince map[string]time.Time // the time at which each step began to wait; nil if no step is waiting
	applied      *apply.Applied
	unauthorized bool          // the target has rejected the credentials in this run
	stopFollow   func()        // stops following changes; nil if the item is not waiting
	cleanUpDelay time.Duration // the last pause between two attempts to clean up former clusters
	// subscriptions watches the objects for which a step waits
	subscriptions subscriptions
}

// valueStore contains the values that a deployer stores for an item. See Run.GetOrCreateValue. A deployer stores very
// few values, so a list takes less memory than a map.
type valueStore struct {
	mu  sync.Mutex
	all []keyedValue
}

type keyedValue struct{ key, value any }

// get returns the value for a key. If there is none, it stores and returns the result of the function `create`. If
// `create` is nil, it returns nil.
func (v *valueStore) get(key any, create func() any) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		if one.key == key {
			return one.value
		}
	}
	if create == nil {
		return nil
	}
	value := create()
	v.all = append(v.all, keyedValue{key, value})
	return value
}

// notifyForgotten calls the method Forget of each stored value that has such a method.
func (v *valueStore) notifyForgotten() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.all {
		if value, ok := one.value.(interface{ Forget() }); ok {
			value.Forget()
		}
	}
}

// startFollowing makes changes of the item's objects trigger the next reconcile, unless they do so already.
func (i *item) startFollowing(watcher *observe.Watcher, uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopFollow == nil {
		i.stopFollow = watcher.OnChange(uid, func(observe.Object) { i.triggers.NotifyChange() })
	}
}

// isWaiting reports whether the item is waiting for its objects. In this case, events trigger the next reconcile.
func (i *item) isWaiting() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopFollow != nil
}

func (i *item) stopFollowing() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopFollow != nil {
		i.stopFollow()
		i.stopFollow = nil
		i.triggers.StopWaiting()
	}
}

// beginCall records the beginning of a call. If the call belongs to another run than the previous call, begin resets
// the waiting times and the record of applied objects, and returns true.
func (i *item) beginCall(run uint64) (isNew bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if isNew = i.run != run; isNew {
		i.run, i.waitingSince, i.unauthorized, i.applied = run, nil, false, &apply.Applied{}
	}
	return isNew
}

// resetApplied resets the record of applied objects, for a new run that has the same ID as the previous one.
func (i *item) resetApplied() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.applied = &apply.Applied{}
}

// getWaitTime returns how long a step has been waiting in this run.
func (i *item) getWaitTime(step string, now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.waitingSince == nil {
		i.waitingSince = map[string]time.Time{}
	}
	if i.waitingSince[step].IsZero() {
		i.waitingSince[step] = now
	}
	return now.Sub(i.waitingSince[step])
}

// recordUnauthorized records that the target rejected the credentials. It returns true if the target has already
// rejected them before in this run.
func (i *item) recordUnauthorized() (before bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, i.unauthorized = i.unauthorized, true
	return before
}

// getApplied returns the record of the objects that the current run of the item has applied so far.
func (i *item) getApplied() *apply.Applied {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.applied
}

// resetWaiting resets the waiting times, and stops watching the objects for which a step waited.
func (i *item) resetWaiting() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waitingSince, i.unauthorized = nil, false
	i.subscriptions.stop()
}

// stopSubscriptions stops watching the objects for which a step waited.
func (i *item) stopSubscriptions() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.subscriptions.stop()
}
