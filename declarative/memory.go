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

// maxPace is how slow an item gets that fails.
const maxPace = 10 * time.Minute

// memories is what is known about items in memory. Losing it costs reads, nothing else.
type memories struct {
	items     client.Reader   // from the cache; nil: nothing is swept
	forgotten func(types.UID) // is told of each item that is forgotten

	mu    sync.Mutex
	all   map[types.UID]*memory
	sweep int // at that many, those that went are looked for
}

const sweepFrom = 64

func newMemories(items client.Reader) *memories {
	return &memories{items: items, forgotten: func(types.UID) {}, all: map[types.UID]*memory{}, sweep: sweepFrom}
}

// memory of one item. The library runs one call at a time for an item; changes of children come at any time.
type memory struct {
	uid types.UID
	key types.NamespacedName

	// Used by calls only.
	cluster *upkeep.Cluster           // that the item was brought to last
	written map[apply.Ref]string      // versions of children that our own last write made
	settled map[apply.Ref]fingerprint // of children that need no look, see settle
	exports []byte                    // the stored exports as JSON; nil if not known

	mu     sync.Mutex
	called time.Time     // when the last run began
	failed int           // calls in a row that ended with an error
	errors uint64        // of all calls
	slow   time.Duration // what a handler that is not stable has to wait
	wished bool          // the next run is by our own wish
}

// of returns what is known of an item.
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

// find is of for an item that is known already; nil if it is not.
func (s *memories) find(uid types.UID) *memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[uid]
}

// forget ends the memory of an item.
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

// forgetGone forgets the items that went without our doing, such as by delete-without-uninstall. It asks the cache only.
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

// began notes a run. It comes before whatever the run looks at, so that a change meanwhile waits from now on.
func (m *memory) began(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.called = now
}

// wish notes that a run is wanted because something may have changed.
func (m *memory) wish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wished = true
}

// takeWish tells whether a run that begins is by our own wish. Else somebody else asked for it, such as a schedule, and
// is to be told that it ran.
func (m *memory) takeWish() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	wished := m.wished
	m.wished = false
	return wished
}

// ended counts how a call of the handler ended, and tells how many failed in a row.
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

// slowDown has changes wait for so long after the last call; 0: as usual.
func (m *memory) slowDown(wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = wait
}

// errorCount is how many calls of the handler failed.
func (m *memory) errorCount() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.errors
}

// next is when a change may bring the handler back: after an interval since the last call, which doubles with each
// failure.
func (m *memory) next(interval time.Duration) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.called.IsZero() {
		return time.Time{}
	}
	return m.called.Add(max(paced(interval, m.failed), m.slow))
}

// paced doubles an interval so many times, up to maxPace.
func paced(interval time.Duration, times int) time.Duration {
	factor := math.Pow(2, float64(times))
	return time.Duration(min(float64(interval)*factor, float64(max(maxPace, interval))))
}
