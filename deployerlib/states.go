// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"fmt"
	"slices"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/internal/version"
)

// states remembers what the process knows about each of our items. Its size is
// that of the items in the cache: an entry goes with its item.
type states struct {
	mu    sync.Mutex
	items map[types.NamespacedName]*itemState
}

func newStates() *states { return &states{items: map[types.NamespacedName]*itemState{}} }

// get returns the state of an item, new if there is none.
func (s *states) get(key types.NamespacedName) *itemState {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.items[key]
	if !ok {
		st = &itemState{}
		s.items[key] = st
	}
	return st
}

// forget drops the state of an item that is gone. A call that still hangs
// keeps its entry, so that nothing runs beside it.
func (s *states) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st, ok := s.items[key]; ok && !st.isQuarantined() {
		delete(s.items, key)
	}
}

// itemState is the memory of one item. Nothing in it is needed for
// correctness after a restart.
type itemState struct {
	mu          sync.Mutex
	uid         types.UID
	released    types.UID     // of the item that is gone at the API server, whatever the cache says
	print       fingerprint   // of the item as we last acted on it, our own writes included
	expected    []fingerprint // of the writes that are under way
	foreign     bool          // a write met a foreign change that no pass has acted on
	notBefore   time.Time     // a pop before this with the seen print does nothing
	triggered   bool          // somebody asked for a pass: the gate is open
	lastWrite   string        // newest resourceVersion that a write or a live read of ours has shown
	awaited     bool          // a pass waits for the event of our last write
	failures    int           // in a row, for the backoff
	immediate   int           // immediate requeues in a row
	claimed     string        // the run that this process started or fenced
	abortSeen   time.Time     // when an abort was first seen
	resumed     bool          // Resume was called
	pending     *pendingWrite
	running     *run
	quarantined bool
}

// observe handles an event: it cancels a call that must end and tells whether
// the item needs a pass.
func (s *itemState) observe(di *lsv1alpha1.DeployItem, p fingerprint) (*run, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited && !older(di.ResourceVersion, s.lastWrite) {
		s.awaited, s.triggered = false, true
		return s.running, true
	}
	return s.running, p != s.print && !slices.Contains(s.expected, p) && !s.isOwn(di.ResourceVersion)
}

// isOwn tells that a version is not newer than our last write. Every write
// carries the version that it is based on, so whatever was there before one
// that met no foreign change is known.
func (s *itemState) isOwn(resourceVersion string) bool {
	return !s.foreign && s.lastWrite != "" && !older(s.lastWrite, resourceVersion)
}

// metForeign notes that a write met a change by somebody else.
func (s *itemState) metForeign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.foreign = true
}

// trigger opens the gate.
func (s *itemState) trigger() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.triggered = true
}

// gate decides about a pop: how long to wait when it comes too early. A version
// from before our own last write is no news: the cache lags behind.
func (s *itemState) gate(di *lsv1alpha1.DeployItem, now time.Time) time.Duration {
	p := printOf(di)
	s.mu.Lock()
	defer s.mu.Unlock()
	lags := s.print.valid && s.lastWrite != "" && older(di.ResourceVersion, s.lastWrite)
	if p != s.print && !lags {
		s.failures, s.immediate = 0, 0
		return 0
	}
	if s.triggered || !now.Before(s.notBefore) {
		return 0
	}
	return s.notBefore.Sub(now)
}

// begin notes that a pass runs. false: one that ignores cancellation still does.
func (s *itemState) begin(r *run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quarantined {
		return false
	}
	s.running, s.triggered, s.awaited, s.foreign = r, false, false, false
	return true
}

// end notes how a pass ended: the print it acted on, and when to come back.
func (s *itemState) end(p fingerprint, known bool, notBefore time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running, s.notBefore = nil, notBefore
	s.expected, s.foreign = nil, !known
	s.print = fingerprint{}
	if known {
		s.print = p
	}
}

// awaitIfStale tells whether an item from the cache is older than our own last
// write; its event will wake the pass.
func (s *itemState) awaitIfStale(di *lsv1alpha1.DeployItem) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited = s.lastWrite != "" && older(di.ResourceVersion, s.lastWrite)
	return s.awaited
}

// hasWritten tells whether a version is older than our own last write.
func (s *itemState) hasWritten(resourceVersion string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastWrite != "" && older(resourceVersion, s.lastWrite)
}

// expect announces a write, so that its event is known when it comes.
func (s *itemState) expect(prints ...fingerprint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = prints
}

// wrote notes the resourceVersion of our own write.
func (s *itemState) wrote(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastWrite == "" || older(s.lastWrite, resourceVersion) {
		s.lastWrite = resourceVersion
	}
}

// claim notes that this process runs the item's current run; it tells whether it did so before.
func (s *itemState) claim(di *lsv1alpha1.DeployItem) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := runID(di)
	before := s.claimed == id
	s.claimed = id
	return before
}

// unclaim takes the claim back.
func (s *itemState) unclaim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = ""
}

// abortDeadline is when an abort that goes on failing is given up.
func (s *itemState) abortDeadline(di *lsv1alpha1.DeployItem, now time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abortSeen.IsZero() {
		s.abortSeen = now
	}
	return contract.AbortDeadline(di, s.abortSeen)
}

// noAbort notes that no abort is asked for: the time of the next one begins anew.
func (s *itemState) noAbort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abortSeen = time.Time{}
}

// isQuarantined tells whether a call of this item ignores its cancellation.
func (s *itemState) isQuarantined() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quarantined
}

// release notes that an item is gone at the API server: it lost its last
// finalizer, or was not found. The answer to that write carries no new
// resourceVersion by which a stale cache could be told.
func (s *itemState) release(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.released = uid
}

// isReleased tells whether the item from the cache is known to be gone.
func (s *itemState) isReleased(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uid != "" && s.released == uid
}

// identify starts over what belongs to one object when the item was made anew under its name.
func (s *itemState) identify(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uid != uid {
		s.uid, s.resumed, s.abortSeen, s.failures = uid, false, time.Time{}, 0
	}
}

// quarantine sets or lifts the quarantine.
func (s *itemState) quarantine(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quarantined = on
}

// runID names a run: the job and when it was picked up.
func runID(di *lsv1alpha1.DeployItem) string {
	id := string(di.UID) + "/" + di.Status.JobID
	if t := di.Status.LastReconcileTime; t != nil {
		id = fmt.Sprintf("%s/%d", id, t.Unix())
	}
	return id
}

// older tells whether resourceVersion a comes before b. What cannot be compared is not older.
func older(a, b string) bool {
	return version.Older(a, b)
}
