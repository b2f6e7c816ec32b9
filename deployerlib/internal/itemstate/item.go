// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"context"
	"hash/maphash"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/contract"
)

// Unconfirmed is the outcome of a finished run, if the API server did not confirm the write of this outcome. The next
// attempt first writes the outcome again, so that the deployer is not called again for the run.
type Unconfirmed interface {
	// Flush writes the outcome to the current version of the item. If the API server does not confirm this write either,
	// the outcome stays unconfirmed.
	Flush(ctx context.Context) error
	// GetStored returns the item as the API server stored it last.
	GetStored() *lsv1alpha1.DeployItem
	// GetDecision returns the decision that started the run.
	GetDecision() contract.Decision
}

// Item is the state of one deploy item.
type Item struct {
	mu          sync.Mutex
	uid         types.UID
	gate        gate
	lastWait    Digest // the digest of the version for which Wait was called last
	versions    versions
	retries     retries
	ownRun      uint64 // the ID of the run for which MarkOwnRun was called last, or 0
	keptPhase   lsv1alpha1.DeployItemPhase
	unconfirmed Unconfirmed
	inflight    *Attempt
	resumed     bool // Resume of the deployer succeeded for the current object
	quarantined bool // a call ignores its cancellation
	newestEvent eventVersion
	requested   time.Time // see Item.GetRequestTime
	progress    Progress
	handedOut   time.Time // when the run in progress was handed out; zero if there is none
}

// eventVersion is the newest version of an item that an event contained, and the time of that event.
type eventVersion struct {
	digest Digest
	at     time.Time
}

// RecordEvent records that an event with a version of the item has arrived. Call it before the item is queued.
func (i *Item) RecordEvent(di *lsv1alpha1.DeployItem, now time.Time) {
	d := ComputeDigest(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	if d != i.newestEvent.digest {
		i.newestEvent = eventVersion{d, now}
	}
}

// GetRequestTime returns a time before which the current run of the item was requested: what the API server stores at
// that time or later is at least as new as the request. If `isNew` is true, the run has yet to begin, and is requested
// by the given version of the item. The time is then the one of the event with that version, or now if there was no
// such event. Otherwise, it is the time that GetRequestTime returned for the run before, or now after a restart.
func (i *Item) GetRequestTime(di *lsv1alpha1.DeployItem, isNew bool, now time.Time) time.Time {
	d := ComputeDigest(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	if isNew || i.requested.IsZero() {
		i.requested = now
		if d == i.newestEvent.digest {
			i.requested = i.newestEvent.at
		}
	}
	return i.requested
}

// Observe handles an event and reports whether the item needs a reconcile. The parameter `old` is the previous version
// in the cache, or nil.
func (i *Item) Observe(old, di *lsv1alpha1.DeployItem) bool {
	d := ComputeDigest(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.versions.awaited && !i.versions.isBehind(di.ResourceVersion) {
		i.versions.awaited, i.gate.open = false, true
		return true
	}
	if old != nil && isOlder(di.ResourceVersion, old.ResourceVersion) { // etcd was restored, or this API server lags behind
		i.versions.removed, i.gate.open = "", true
		return true
	}
	return !i.gate.isKnown(d) && !i.versions.isKnown(di.ResourceVersion)
}

// CancelFor cancels the call in flight if the newer version di of the item requires the cancellation. It does not
// block.
func (i *Item) CancelFor(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inflight != nil {
		i.inflight.observe(di)
	}
}

// CancelCall cancels the call in flight of an item that no longer exists.
func (i *Item) CancelCall() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.inflight != nil && i.inflight.inCall {
		i.inflight.cancel(ErrInterrupted)
	}
}

// Trigger requests a reconcile although the item has not changed. The reconcile does not begin before the time
// Schedule.TriggersNotBefore of the last attempt.
func (i *Item) Trigger() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.triggered = true
}

// AllowReconcile makes the next queue entry lead to a reconcile, even if the last attempt has failed. Call it if an
// object that the item refers to has changed.
func (i *Item) AllowReconcile() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.open = true
}

// KeepPhase stores the phase that the deployer set in a background run. The status of the item does not contain this
// phase.
func (i *Item) KeepPhase(phase lsv1alpha1.DeployItemPhase) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keptPhase = phase
}

// GetKeptPhase returns the phase that KeepPhase stored last, or "" if there is none.
func (i *Item) GetKeptPhase() lsv1alpha1.DeployItemPhase {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keptPhase
}

// GetDelay returns the time that is left until the next attempt may begin, or zero if the attempt may begin now. If the
// item has changed, Wait resets the number of failures. A version that is older than the last write does not count as a
// change. Such a version only means that the cache lags behind. If the parameter `job` is false, no job is due, and a
// changed item waits until Schedule.ChangesNotBefore.
func (i *Item) GetDelay(di *lsv1alpha1.DeployItem, job bool, now time.Time) time.Duration {
	d := ComputeDigest(di)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lastWait = d
	lags := i.gate.digest != 0 && i.versions.isBehind(di.ResourceVersion)
	if d != i.gate.digest && !lags {
		i.retries.Retries = Retries{}
		if job {
			return 0
		}
		return max(i.gate.schedule.changesNotBefore.toTime().Sub(now), 0)
	}
	return i.gate.getDelay(now)
}

// CheckRead determines whether a version from the cache is current, stale, or a version of an item that no longer
// exists. If the version is current and belongs to a new object of the same name, CheckRead removes the state of the
// former object.
func (i *Item) CheckRead(di *lsv1alpha1.DeployItem, now time.Time) Reading {
	i.mu.Lock()
	defer i.mu.Unlock()
	reading := i.versions.checkRead(di.UID, di.ResourceVersion, now)
	if reading == ReadingCurrent && i.uid != di.UID {
		i.uid, i.resumed, i.retries.Failures, i.retries.firstAbort = di.UID, false, 0, time.Time{}
	}
	return reading
}

// ConfirmRead records the version that a live read returned, and reports whether the response can be relied on. It
// returns false if the version is older than the newest known version or than one of the versions in the parameter
// `others`, because such a response may be stale. Two such responses can prove that resource versions went backwards,
// for example after a restore of etcd. ConfirmRead then accepts the version as the newest one, resets the state and
// returns true.
func (i *Item) ConfirmRead(version string, now time.Time, others ...string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	accepted, regressed := i.versions.confirm(version, others, now)
	if regressed {
		i.gate, i.ownRun = gate{open: true}, 0
	}
	return accepted
}

// ExpectWrite records the digests that a write is about to produce.
func (i *Item) ExpectWrite(digests ...Digest) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gate.expected = digests
}

// RecordWrite records the response to a write. If the response is a terminating item without finalizers, the item no
// longer exists. The resourceVersion of this response does not show the deletion, because it is equal to the
// resourceVersion of the previous version. In this case, RecordWrite therefore also records the UID of the item.
func (i *Item) RecordWrite(di *lsv1alpha1.DeployItem) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.updateNewest(di.ResourceVersion)
	if di.DeletionTimestamp != nil && len(di.Finalizers) == 0 {
		i.versions.removed = di.UID
	}
}

// HasConfirmedVersion reports whether a write or a live read of this process has returned a version of the item.
func (i *Item) HasConfirmedVersion() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.versions.newest != ""
}

// RecordRemoval records that the item with the given UID no longer exists at the API server.
func (i *Item) RecordRemoval(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.removed = uid
}

// MarkStale records that another client has changed the item.
func (i *Item) MarkStale() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.versions.changedByOther = true
}

// MarkOwnRun records that the current run of the item belongs to this process. It reports whether the previous call
// of MarkOwnRun was for the same run.
func (i *Item) MarkOwnRun(di *lsv1alpha1.DeployItem) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	id := getRunID(di)
	before := i.ownRun == id
	i.ownRun = id
	return before
}

// ClearOwnRun undoes MarkOwnRun.
func (i *Item) ClearOwnRun() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.ownRun = 0
}

// GetAbortDeadline returns the time after which a failing abort is no longer retried. The deadline depends on the time
// at which GetAbortDeadline was first called for this abort. GetAbortDeadline records this time.
func (i *Item) GetAbortDeadline(di *lsv1alpha1.DeployItem, now time.Time) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.retries.firstAbort.IsZero() {
		i.retries.firstAbort = now
	}
	return contract.AbortDeadline(di, i.retries.firstAbort)
}

// ClearAbort records that no abort is requested. The deadline of the next abort will be computed anew.
func (i *Item) ClearAbort() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.retries.firstAbort = time.Time{}
}

// RecordEnd records how an attempt ended and returns the counters.
func (i *Item) RecordEnd(e AttemptEnd) Retries {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.retries.recordEnd(e)
}

// RecordCall records a call of the deployer that began at a given time. It returns the time before which no trigger
// starts another call: after a background run, the end of the interval; after a call in a job, this applies only if
// there were many calls in a short time.
func (i *Item) RecordCall(began time.Time, interval time.Duration, background bool) time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.retries.recordCall(began, interval, background)
}

// IsResumed reports whether MarkResumed was called for the current object.
func (i *Item) IsResumed() bool {
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

// KeepUnconfirmed stores an outcome that has yet to be written.
func (i *Item) KeepUnconfirmed(u Unconfirmed) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unconfirmed = u
}

// PopUnconfirmed removes and returns the outcome that KeepUnconfirmed stored, or nil if there is none.
func (i *Item) PopUnconfirmed() Unconfirmed {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.unconfirmed
	i.unconfirmed = nil
	return u
}

// Quarantine begins the quarantine of the item, because a call ignores its cancellation. During the quarantine, no
// attempt begins. Call the returned function when the call has returned.
func (i *Item) Quarantine() (release func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.quarantined = true
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.quarantined = false
	}
}

// IsQuarantined reports whether the item is in quarantine, because a call ignores its cancellation.
func (i *Item) IsQuarantined() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.quarantined
}

// getRunID returns an ID of a run. The ID is the hash of the item's UID, the job and the start time.
func getRunID(di *lsv1alpha1.DeployItem) uint64 {
	run := struct {
		item  types.UID
		job   string
		began int64
	}{item: di.UID, job: di.Status.JobID}
	if t := di.Status.LastReconcileTime; t != nil {
		run.began = t.Unix()
	}
	return maphash.Comparable(digestSeed, run)
}
