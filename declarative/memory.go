// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
)

// memory is the in-memory state of one item. If it is lost, the only consequence is additional reads. The library makes
// only one call at a time for an item. However, children may change during a call, so a lock guards the fields that the
// deployer uses when a child changes.
type memory struct {
	uid       types.UID
	stability *stability

	// Only one call at a time uses these fields, so they need no lock.
	cluster        *managed.Cluster              // the cluster to which the item was last deployed
	unchanged      map[apply.Ref]observe.Version // the versions of the children that have the desired state; see the method `recordUnchanged`
	exports        []byte                        // the stored exports as JSON, or nil if they are not known
	stabilityState stabilityState

	mu       sync.Mutex
	lastCall time.Time     // when the last run began
	errors   uint64        // number of failed calls
	delay    time.Duration // the delay for an unstable handler

	requestLock sync.Mutex // held while this deployer requests a run, and while a starting run removes all requests
	isRequested bool       // this deployer has requested the next run
}

// memoryKey is the key of the memory in the values that package managed stores for each item.
type memoryKey struct{}

// getMemory returns the memory of the item of a run, and creates it if there is none.
func (d *deployer) getMemory(up *managed.Run) *memory {
	return up.GetOrCreateValue(memoryKey{}, func() any { return &memory{uid: up.Item.UID, stability: d.stability} }).(*memory)
}

// countFailedCalls returns the number of failed calls of the handler for each item that exists.
func (d *deployer) countFailedCalls() map[types.NamespacedName]uint64 {
	out := map[types.NamespacedName]uint64{}
	for name, value := range d.manager.ListValues(context.Background(), memoryKey{}) { // reads only from the cache
		out[name] = value.(*memory).errorCount()
	}
	return out
}

// Forget releases the stored children of the item. Package managed calls it when it removes the item from memory.
func (m *memory) Forget() { m.stability.forget(&m.stabilityState) }

// recordStart records the start of a run. MinInterval is counted from this time. recordStart must be called before the
// run reads anything, so that MinInterval also applies to changes during the run.
func (m *memory) recordStart(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastCall = now
}

// requestRun records that this deployer itself requests a run, and then calls the function `request`. A lock ensures
// that no run begins between these two steps. Such a run would remove the record, and the requested run would seem to
// have another cause.
func (m *memory) requestRun(request func()) {
	m.requestLock.Lock()
	defer m.requestLock.Unlock()
	m.isRequested = true
	request()
}

// takeRequest is called when a run begins. It calls the function `take`, which removes all requests for runs.
// takeRequest reports whether this deployer itself made one of these requests. If it returns false, the run has another
// cause, such as a schedule. The run must then not end with deployerlib.ErrUnchanged, because its time would not be
// stored.
func (m *memory) takeRequest(take func()) bool {
	m.requestLock.Lock()
	defer m.requestLock.Unlock()
	requested := m.isRequested
	m.isRequested = false
	take()
	return requested
}

// countError counts a failed call of the handler.
func (m *memory) countError() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errors++
}

// setDelay sets the minimum time between the last call and the next run that a change triggers. Zero means the usual
// interval.
func (m *memory) setDelay(wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = wait
}

// errorCount returns how many calls of the handler have failed.
func (m *memory) errorCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errors
}

// nextCall returns the earliest time at which a change may trigger another call of the handler: the time of the last
// call plus the interval. After a failure, the library delays the call as long as the backoff requires.
func (m *memory) nextCall(interval time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lastCall.IsZero() {
		return time.Time{}
	}
	return m.lastCall.Add(max(interval, m.delay))
}
