// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"context"
	"math"
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

// memories holds in memory what is known about items. If it is lost, this costs reads and nothing else.
type memories struct {
	items     client.Reader   // from the cache; if it is nil, gone items are not looked for
	forgotten func(types.UID) // called for each item that is forgotten

	mu    sync.Mutex
	all   map[types.UID]*memory
	sweep int // number of items at which gone items are looked for
}

const sweepFrom = 64

func newMemories(items client.Reader) *memories {
	return &memories{items: items, forgotten: func(types.UID) {}, all: map[types.UID]*memory{}, sweep: sweepFrom}
}

// memory is what is known about one item. The library makes one call at a time for an item, but children change at any
// time.
type memory struct {
	uid types.UID
	key types.NamespacedName

	// These fields are used by calls only.
	cluster *upkeep.Cluster           // that the item was brought to last
	written map[apply.Ref]string      // versions that this deployer's last write produced
	settled map[apply.Ref]fingerprint // children that need no reading, see settle
	exports []byte                    // the stored exports as JSON; nil if not known

	mu     sync.Mutex
	called time.Time     // when the last run began
	failed int           // consecutive calls that ended with an error
	errors uint64        // number of failed calls
	slow   time.Duration // the delay for an unstable handler
	wished bool          // this deployer requested the next run
}

// of returns the memory of an item, and creates it if there is none.
func (s *memories) of(ctx context.Context, di *lsv1alpha1.DeployItem) *memory {
	s.mu.Lock()
	m := s.all[di.UID]
	if m == nil {
		m = &memory{uid: di.UID, key: client.ObjectKeyFromObject(di), written: map[apply.Ref]string{}}
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

// forget drops the memory of an item.
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
	out := make([]*memory, 0, len(s.all))
	for _, m := range s.all {
		out = append(out, m)
	}
	return out
}

// forgetGone forgets the items that disappeared without a run, such as by delete-without-uninstall. It only reads the
// cache.
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

// began records the start of a run. It must come before the run reads anything, so that MinInterval counts from here
// for changes in the meantime.
func (m *memory) began(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.called = now
}

// wish records that a run is wanted because something may have changed.
func (m *memory) wish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wished = true
}

// takeWish reports whether this deployer itself requested the run that begins. Otherwise something else requested it,
// such as a schedule, which must learn that it ran.
func (m *memory) takeWish() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	wished := m.wished
	m.wished = false
	return wished
}

// ended records how a call of the handler ended, and returns how many calls in a row have failed.
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

// slowDown delays runs after changes by the given time since the last call. Zero means the usual interval.
func (m *memory) slowDown(wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = wait
}

// errorCount returns how many calls of the handler failed.
func (m *memory) errorCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errors
}

// next returns the time at which a change may call the handler again. It is one interval after the last call, and the
// interval doubles with each failure.
func (m *memory) next(interval time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called.IsZero() {
		return time.Time{}
	}
	return m.called.Add(max(paced(interval, m.failed), m.slow))
}

// paced doubles an interval the given number of times, up to maxPace.
func paced(interval time.Duration, times int) time.Duration {
	factor := math.Pow(2, float64(times))
	return time.Duration(min(float64(interval)*factor, float64(max(maxPace, interval))))
}
