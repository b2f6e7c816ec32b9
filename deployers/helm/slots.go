// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/managed"
)

// OperationLimits restrict how many operations on releases are under way at the same time. An operation that waits, for
// example for a hook, counts as well, because its objects are in memory.
type OperationLimits struct {
	// PerTarget is the maximum for one target. The default is 50.
	PerTarget int
	// Total is the maximum for the process. The default is 200.
	Total int
}

// Default returns the limits with all defaults set.
func (l OperationLimits) Default() OperationLimits {
	return OperationLimits{PerTarget: cmp.Or(l.PerTarget, 50), Total: cmp.Or(l.Total, 200)}
}

// slots counts the operations that are under way. It is safe for concurrent use.
type slots struct {
	limits OperationLimits
	wake   func(item types.UID) // requests a run of an item

	mu      sync.Mutex
	held    map[types.UID]*managed.Cluster // the targets of the operations, by item
	waiting []types.UID                    // items whose operations wait for a slot, the oldest first
}

// newSlots returns slots with limits.
func newSlots(limits OperationLimits, wake func(types.UID)) *slots {
	return &slots{limits: limits.Default(), wake: wake, held: map[types.UID]*managed.Cluster{}}
}

// take reserves a slot for an item. If all slots are in use, it returns a description of what the item waits for. The
// item is then woken up when a slot becomes free.
func (s *slots) take(item types.UID, target *managed.Cluster) (reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, item)
	same := 0
	for _, other := range s.held {
		if other == target {
			same++
		}
	}
	switch {
	case len(s.held) >= s.limits.Total:
		reason = fmt.Sprintf("waiting until fewer than %d operations are under way", s.limits.Total)
	case same >= s.limits.PerTarget:
		reason = fmt.Sprintf("waiting until fewer than %d operations are under way in the target", s.limits.PerTarget)
	default:
		s.waiting = slices.DeleteFunc(s.waiting, func(uid types.UID) bool { return uid == item })
		s.held[item] = target
		return ""
	}
	if !slices.Contains(s.waiting, item) {
		s.waiting = append(s.waiting, item)
	}
	return reason
}

// release returns the slot of an item, and wakes up items that wait. It does nothing if the item has no slot.
func (s *slots) release(item types.UID) {
	s.mu.Lock()
	_, had := s.held[item]
	delete(s.held, item)
	s.waiting = slices.DeleteFunc(s.waiting, func(uid types.UID) bool { return uid == item })
	woken := slices.Clone(s.waiting[:min(len(s.waiting), maxWoken)])
	if had {
		s.waiting = slices.Delete(s.waiting, 0, len(woken)) // an item that still finds no slot waits again
	}
	s.mu.Unlock()
	if !had || len(woken) == 0 {
		return
	}
	go func() { // the caller may hold locks that the function wake needs
		for _, uid := range woken {
			s.wake(uid)
		}
	}()
}

// maxWoken limits how many items are woken up when a slot becomes free. Several are woken up, because the first one may
// wait for a slot in another target. An item that is not woken up tries again after slotPollInterval.
const maxWoken = 5

// slotPollInterval is the time after which an item that waits for a slot tries again.
const slotPollInterval = 10 * time.Second

// takeSlot reserves a slot for an operation of the item. If all slots are in use, it returns an error that makes the
// item wait.
func (r *run) takeSlot() error {
	if reason := r.deployer.slots.take(r.Managed.Item.UID, r.Managed.Cluster); reason != "" {
		return r.Managed.NewWaitError("operations", 0, reason, slotPollInterval)
	}
	return nil
}
