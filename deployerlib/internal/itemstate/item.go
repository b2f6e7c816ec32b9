// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"context"
	"fmt"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// Unconfirmed is the outcome of a finished run that the API server did not confirm. It is written
// before anything else happens to the item, so that the deployer is not called again for the run.
type Unconfirmed interface {
	// Flush writes the outcome onto the item as it is now. If that is not confirmed either, it keeps it.
	Flush(ctx context.Context) error
	// Stored returns the item as the API server stored it last.
	Stored() *lsv1alpha1.DeployItem
	// Decision returns what was due in the run.
	Decision() contract.Decision
}

// Item is what is known about one deploy item.
type Item struct {
	mu          sync.Mutex
	uid         types.UID
	gate        gate
	versions    versions
	retries     retries
	claimed     string // the run that this process started or fenced
	resumed     bool   // the deployer was told about the finished item
	keptPhase   lsv1alpha1.DeployItemPhase
	unconfirmed Unconfirmed
	inflight    *Attempt
	quarantined bool // a call ignores its cancellation
}

// Observe takes note of an event: old is the version that the cache had before, or nil. It reports
// whether the item needs a reconcile.
func (i *Item) Observe(old, di *lsv1alpha1.DeployItem) bool {
	d := DigestOf(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.versions.awaited && !i.versions.lags(di.ResourceVersion) {
		i.versions.awaited, i.gate.triggered = false, true
		return true
	}
	if old != nil && older(di.ResourceVersion, old.ResourceVersion) { // a restored etcd, or an API server that lags behind
		i.versions.released, i.gate.triggered = "", true
		return true
	}
	return !i.gate.knows(d) && !i.versions.covers(di.ResourceVersion)
}

// CancelFor cancels the call in flight if a newer version of the item asks for that. It does not block.
func (i *Item) CancelFor(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inflight != nil {
		i.inflight.observe(di)
	}
}

// Interrupt cancels the call in flight of an item that does not exist any more.
func (i *Item) Interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inflight != nil && i.inflight.inCall {
		i.inflight.cancel(ErrInterrupted)
	}
}

// Trigger makes the next queue entry lead to a reconcile.
func (i *Item) Trigger() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.triggered = true
}

// KeepPhase remembers the phase of a background run, which the item does not show.
func (i *Item) KeepPhase(phase lsv1alpha1.DeployItemPhase) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keptPhase = phase
}

// KeptPhase returns the phase of a background run, if the deployer left one in this process.
func (i *Item) KeptPhase() lsv1alpha1.DeployItemPhase {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keptPhase
}

// Wait returns how long a queue entry has to wait if it comes too early, and zero otherwise. A
// change of the item starts the counting of failures over. A version from before the last write is
// no change, because the cache lags behind.
func (i *Item) Wait(di *lsv1alpha1.DeployItem, now time.Time) time.Duration {
	d := DigestOf(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	lags := i.gate.digest.valid && i.versions.lags(di.ResourceVersion)
	if d != i.gate.digest && !lags {
		i.retries.Retries = Retries{}
		return 0
	}
	return i.gate.wait(now)
}

// Read judges a version that the cache shows. If it is current, and another object than before has
// the name of the item, what belongs to the former object is forgotten.
func (i *Item) Read(di *lsv1alpha1.DeployItem, now time.Time) Reading {
	i.mu.Lock()
	defer i.mu.Unlock()
	reading := i.versions.read(di.UID, di.ResourceVersion, now)
	if reading == ReadingCurrent && i.uid != di.UID {
		i.uid, i.resumed, i.retries.Failures, i.retries.abortSeen = di.UID, false, 0, time.Time{}
	}
	return reading
}

// ConfirmRead takes note of the version that a live read returned. It reports false if the answer
// is older than a version that this process knows, or than one of the others, and therefore proves
// nothing. Once two such answers have proven that resource versions went backwards, it starts over
// with the version and reports true.
func (i *Item) ConfirmRead(version string, now time.Time, others ...string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	accepted, regressed := i.versions.confirm(version, others, now)
	if regressed {
		i.gate, i.claimed = gate{triggered: true}, ""
	}
	return accepted
}

// ExpectWrite takes note of the digests that a write is about to bring about.
func (i *Item) ExpectWrite(digests ...Digest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.expected = digests
}

// Wrote takes note of the answer to a write. It tells a version without finalizers that is being
// deleted apart: that item is gone, and the version is one that the cache has already.
func (i *Item) Wrote(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.raise(di.ResourceVersion)
	if di.DeletionTimestamp != nil && len(di.Finalizers) == 0 {
		i.versions.released = di.UID
	}
}

// Released takes note of a live read that did not find the item.
func (i *Item) Released(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.released = uid
}

// MetForeign takes note of a write that met a change by another client.
func (i *Item) MetForeign() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.foreign = true
}

// Claim notes that this process runs the current run of the item. It reports whether it did so before.
func (i *Item) Claim(di *lsv1alpha1.DeployItem) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	id := runID(di)
	before := i.claimed == id
	i.claimed = id
	return before
}

// Unclaim takes the claim back.
func (i *Item) Unclaim() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claimed = ""
}

// AbortDeadline returns the time at which an abort that goes on failing is given up.
func (i *Item) AbortDeadline(di *lsv1alpha1.DeployItem, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.retries.abortSeen.IsZero() {
		i.retries.abortSeen = now
	}
	return contract.AbortDeadline(di, i.retries.abortSeen)
}

// ClearAbort notes that no abort is asked for. The time of the next one begins anew.
func (i *Item) ClearAbort() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.retries.abortSeen = time.Time{}
}

// Count takes note of how an attempt ended and returns the counters.
func (i *Item) Count(e End) Retries {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.retries.count(e)
}

// Resumed reports whether MarkResumed was called for the current object.
func (i *Item) Resumed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resumed
}

// MarkResumed notes that the deployer was told about the finished item.
func (i *Item) MarkResumed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resumed = true
}

// KeepUnconfirmed keeps an outcome that still has to be written.
func (i *Item) KeepUnconfirmed(u Unconfirmed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unconfirmed = u
}

// TakeUnconfirmed returns the outcome that still has to be written, or nil.
func (i *Item) TakeUnconfirmed() Unconfirmed {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.unconfirmed
	i.unconfirmed = nil
	return u
}

// Quarantine notes that a call ignores its cancellation, or returned at last. Until then no attempt begins.
func (i *Item) Quarantine(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.quarantined = on
}

// Quarantined reports whether a call ignores its cancellation.
func (i *Item) Quarantined() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.quarantined
}

// runID names a run by its job and the time at which it was picked up.
func runID(di *lsv1alpha1.DeployItem) string {
	id := string(di.UID) + "/" + di.Status.JobID
	if t := di.Status.LastReconcileTime; t != nil {
		id = fmt.Sprintf("%s/%d", id, t.Unix())
	}
	return id
}
