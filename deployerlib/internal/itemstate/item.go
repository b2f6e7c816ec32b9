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

// Unconfirmed is the outcome of a finished run whose write the API server did not confirm. It is written before
// anything else happens to the item, so that the deployer is not called again for the run.
type Unconfirmed interface {
	// Flush writes the outcome to the current version of the item. If that is not confirmed either, the outcome stays
	// unconfirmed.
	Flush(ctx context.Context) error
	// Stored returns the item as the API server stored it last.
	Stored() *lsv1alpha1.DeployItem
	// Decision returns what was due in the run.
	Decision() contract.Decision
}

// Item is the state of one deploy item.
type Item struct {
	mu          sync.Mutex
	uid         types.UID
	gate        gate
	versions    versions
	retries     retries
	claimed     string // the run that this process started or fenced
	resumed     bool   // Resume was called for the finished item
	keptPhase   lsv1alpha1.DeployItemPhase
	unconfirmed Unconfirmed
	inflight    *Attempt
	quarantined bool // a call ignores its cancellation
}

// Observe handles an event. old is the version that the cache had before, or nil. Observe reports whether the item
// needs a reconcile.
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

// CancelFor cancels the call in flight if a newer version of the item requires it. It does not block.
func (i *Item) CancelFor(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inflight != nil {
		i.inflight.observe(di)
	}
}

// Interrupt cancels the call in flight of an item that no longer exists.
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

// Wait returns how long a queue entry must wait if it comes too early, and zero otherwise. A change of the item resets
// the number of failures. A version from before the last write is not a change, because the cache lags behind.
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

// Read judges a version from the cache. If it is current and the object was replaced by another one of the same name,
// the state of the former object is removed.
func (i *Item) Read(di *lsv1alpha1.DeployItem, now time.Time) Reading {
	i.mu.Lock()
	defer i.mu.Unlock()
	reading := i.versions.read(di.UID, di.ResourceVersion, now)
	if reading == ReadingCurrent && i.uid != di.UID {
		i.uid, i.resumed, i.retries.Failures, i.retries.abortSeen = di.UID, false, 0, time.Time{}
	}
	return reading
}

// ConfirmRead records the version that a live read returned. It returns false if the version is older than one that
// this process knows, or than one of the others, because such a response proves nothing. Once two such responses have
// proven that resource versions went backwards, it starts over with the version and returns true.
func (i *Item) ConfirmRead(version string, now time.Time, others ...string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	accepted, regressed := i.versions.confirm(version, others, now)
	if regressed {
		i.gate, i.claimed = gate{triggered: true}, ""
	}
	return accepted
}

// ExpectWrite records the digests that a write is about to produce.
func (i *Item) ExpectWrite(digests ...Digest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.expected = digests
}

// Wrote records the response to a write. If the response is an item that is terminating and has no finalizers, the item
// no longer exists, and its version is one that the cache already has.
func (i *Item) Wrote(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.raise(di.ResourceVersion)
	if di.DeletionTimestamp != nil && len(di.Finalizers) == 0 {
		i.versions.released = di.UID
	}
}

// Released records that a live read did not find the item.
func (i *Item) Released(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.released = uid
}

// MetForeign records that a write met a change by another client.
func (i *Item) MetForeign() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.foreign = true
}

// Claim records that this process runs the current run of the item. It reports whether it did so before.
func (i *Item) Claim(di *lsv1alpha1.DeployItem) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	id := runID(di)
	before := i.claimed == id
	i.claimed = id
	return before
}

// Unclaim removes the claim.
func (i *Item) Unclaim() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.claimed = ""
}

// AbortDeadline returns the time after which a failing abort is no longer retried.
func (i *Item) AbortDeadline(di *lsv1alpha1.DeployItem, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.retries.abortSeen.IsZero() {
		i.retries.abortSeen = now
	}
	return contract.AbortDeadline(di, i.retries.abortSeen)
}

// ClearAbort records that no abort is requested. The deadline of the next one starts over.
func (i *Item) ClearAbort() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.retries.abortSeen = time.Time{}
}

// Count records how an attempt ended and returns the counters.
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

// MarkResumed records that Resume succeeded for the finished item.
func (i *Item) MarkResumed() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.resumed = true
}

// KeepUnconfirmed keeps an outcome that has yet to be written.
func (i *Item) KeepUnconfirmed(u Unconfirmed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unconfirmed = u
}

// TakeUnconfirmed removes and returns the outcome that has yet to be written, or nil.
func (i *Item) TakeUnconfirmed() Unconfirmed {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.unconfirmed
	i.unconfirmed = nil
	return u
}

// Quarantine sets whether a call ignores its cancellation. While it does, no attempt begins.
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

// runID returns an ID of a run, derived from its job and start time.
func runID(di *lsv1alpha1.DeployItem) string {
	id := string(di.UID) + "/" + di.Status.JobID
	if t := di.Status.LastReconcileTime; t != nil {
		id = fmt.Sprintf("%s/%d", id, t.Unix())
	}
	return id
}
