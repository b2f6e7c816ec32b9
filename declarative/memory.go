// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/upkeep"
)

// maxPace is the longest interval between two calls for an item that fails.
const maxPace = 10 * time.Minute

// memories contains the in-memory state of all items. If this state is lost, the only consequence is additional reads.
type memories struct {
	items     client.Reader   // reads from the cache; if it is nil, there is no search for deleted items
	forgotten func(types.UID) // called for each item whose memory is discarded

	mu    sync.Mutex
	all   map[types.UID]*memory
	sweep int // the next search for deleted items begins when there are this many items
}

const sweepFrom = 64

func newMemories(items client.Reader) *memories {
	return &memories{items: items, forgotten: func(types.UID) {}, all: map[types.UID]*memory{}, sweep: sweepFrom}
}

// memory is the in-memory state of one item. The library makes only one call at a time for an item. However, children
// may change during a call, so a lock guards the fields that the deployer uses when a child changes.
type memory struct {
	uid types.UID
	key types.NamespacedName

	// Only one call at a time uses these fields, so they need no lock.
	cluster *upkeep.Cluster           // the cluster to which the item was last deployed
	settled map[apply.Ref]fingerprint // children that the engine need not read; see the method `settle`
	exports []byte                    // the stored exports as JSON, or nil if they are not known

	mu     sync.Mutex
	called time.Time     // when the last run began
	failed int           // consecutive calls that ended with an error
	errors uint64        // number of failed calls
	slow   time.Duration // the delay for an unstable handler

	wishing sync.Mutex // held while this deployer requests a run, and while a starting run removes all requests
	wished  bool       // this deployer has requested the next run
}

// of returns the memory of an item, and creates it if there is none.
func (s *memories) of(ctx context.Context, di *lsv1alpha1.DeployItem) *memory {
	s.mu.Lock()
	m := s.all[di.UID]
	if m == nil {
		m = &memory{uid: di.UID, key: client.ObjectKeyFromObject(di)}
		s.all[di.UID] = m
	}
	full := len(s.all) >= s.sweep
	s.mu.Unlock()
	if full {
		s.forgetGone(ctx)
	}
	return m
}

// find returns the memory of an item, or nil if there is none.
func (s *memories) find(uid types.UID) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// forget discards the memory of an item.
func (s *memories) forget(uid types.UID) {
	s.mu.Lock()
	delete(s.all, uid)
	s.mu.Unlock()
	s.forgotten(uid)
}

// list returns all memories.
func (s *memories) list() []*memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.all))
}

// forgetGone discards the memory of items that no longer exist. An item may be deleted without a call of the deployer,
// for example because of the annotation delete-without-uninstall. forgetGone reads only from the cache.
func (s *memories) forgetGone(ctx context.Context) {
	if s.items == nil {
		return
	}
	for _, m := range s.list() {
		di := &lsv1alpha1.DeployItem{}
		err := s.items.Get(ctx, m.key, di)
		if apierrors.IsNotFound(err) || err == nil && di.UID != m.uid {
			s.forget(m.uid)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep = max(sweepFrom, 2*len(s.all))
}

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
// plus the interval. The interval doubles with each consecutive failure.
func (m *memory) next(interval time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called.IsZero() {
		return time.Time{}
	}
	return m.called.Add(max(paced(interval, m.failed), m.slow))
}

// paced doubles an interval the given number of times, but not beyond maxPace.
func paced(interval time.Duration, times int) time.Duration {
	factor := math.Pow(2, float64(times))
	return time.Duration(min(float64(interval)*factor, float64(max(maxPace, interval))))
}
