// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/upkeep"
)

// memory is the in-memory state of one item. If it is lost, the only consequence is additional reads. The library makes
// only one call at a time for an item. However, children may change during a call, so a lock guards the fields that the
// deployer uses when a child changes.
type memory struct {
	uid       types.UID
	stability *stability

	// Only one call at a time uses these fields, so they need no lock.
	cluster *upkeep.Cluster               // the cluster to which the item was last deployed
	settled map[apply.Ref]observe.Version // the versions of the children that have the desired state; see the method `settle`
	exports []byte                        // the stored exports as JSON, or nil if they are not known
	steady  steadiness

	mu     sync.Mutex
	called time.Time     // when the last run began
	failed int           // consecutive calls that ended with an error, for the log
	errors uint64        // number of failed calls
	slow   time.Duration // the delay for an unstable handler

	wishing sync.Mutex // held while this deployer requests a run, and while a starting run removes all requests
	wished  bool       // this deployer has requested the next run
}

// memoryKey is the key of the memory in the values that package upkeep stores for each item.
type memoryKey struct{}

// memoryOf returns the memory of the item of a run, and creates it if there is none.
func (d *deployer) memoryOf(up *upkeep.Run) *memory {
	return up.Value(memoryKey{}, func() any { return &memory{uid: up.Item.UID, stability: d.stability} }).(*memory)
}

// failedCalls returns the number of failed calls of the handler for each item that exists.
func (d *deployer) failedCalls() map[types.NamespacedName]uint64 {
	out := map[types.NamespacedName]uint64{}
	for name, value := range d.keeper.Values(context.Background(), memoryKey{}) { // reads only from the cache
		out[name] = value.(*memory).errorCount()
	}
	return out
}

// Forgotten releases the stored children of the item. Package upkeep calls it when it removes the item from memory.
func (m *memory) Forgotten() { m.stability.forget(&m.steady) }

// began records the start of a run. MinInterval is counted from this time. began must be called before the run reads
// anything, so that MinInterval also applies to changes during the run.
func (m *memory) began(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.called = now
}

// wish records that this deployer itself requests a run, and then calls the function `request`. A lock ensures that no
// run begins between these two steps. Such a run would remove the record, and the requested run would seem to have
// another cause.
func (m *memory) wish(request func()) {
	m.wishing.Lock()
	defer m.wishing.Unlock()
	m.wished = true
	request()
}

// takeWish is called when a run begins. It calls the function `take`, which removes all requests for runs. takeWish
// reports whether this deployer itself made one of these requests. If it returns false, the run has another cause, such
// as a schedule. The run must then not end with deployerlib.ErrUnchanged, because its time would not be stored.
func (m *memory) takeWish(take func()) bool {
	m.wishing.Lock()
	defer m.wishing.Unlock()
	wished := m.wished
	m.wished = false
	take()
	return wished
}

// ended records the result of a call of the handler, and returns the number of consecutive failed calls.
func (m *memory) ended(err error) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.failed = 0
		return 0
	}
	m.failed++
	m.errors++
	return m.failed
}

// slowDown sets the minimum time between the last call and the next run that a change triggers. Zero means the usual
// interval.
func (m *memory) slowDown(wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = wait
}

// errorCount returns how many calls of the handler have failed.
func (m *memory) errorCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errors
}

// next returns the earliest time at which a change may trigger another call of the handler: the time of the last call
// plus the interval. After a failure, the library delays the call as long as the backoff requires.
func (m *memory) next(interval time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called.IsZero() {
		return time.Time{}
	}
	return m.called.Add(max(interval, m.slow))
}
