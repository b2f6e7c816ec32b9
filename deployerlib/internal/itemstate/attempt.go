// SPDX-License-Identifier: Apache-2.0

package itemstate

import (
	"context"
	"errors"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lsv1helper "github.com/gardener/landscaper/apis/core/v1alpha1/helper"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
)

// These are the causes with which an Item cancels its attempt in flight.
var (
	ErrAborted     = errors.New("the deploy item was aborted")
	ErrInterrupted = errors.New("the job was interrupted")
	ErrDeadline    = errors.New("the deploy item's timeout passed")
)

// Work describes what an attempt works on: a version of the item, and the decision about what is due.
type Work struct {
	Item     *lsv1alpha1.DeployItem
	Decision contract.Decision
}

// Attempt is a reconcile in flight. Events cancel the attempt. If the attempt does not return, the watchdog abandons
// it. The lock of the Item guards the Attempt.
type Attempt struct {
	item   *Item
	clock  clock.WithDelayedExecution
	cancel context.CancelCauseFunc

	latest    *lsv1alpha1.DeployItem // newest version that an event contained
	work      *Work                  // set by the last Track or StartCall, and kept after the call has returned
	inCall    bool
	timer     clock.Timer
	sealed    bool // the hooks and the call have returned
	abandoned bool // the watchdog has abandoned the attempt and freed its worker
}

// Begin begins an attempt. The function `cancel` cancels the context of the attempt. Begin returns nil if the item is
// in quarantine, because an earlier call still ignores its cancellation.
func (i *Item) Begin(clk clock.WithDelayedExecution, cancel context.CancelCauseFunc) *Attempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.quarantined {
		return nil
	}
	i.inflight = &Attempt{item: i, clock: clk, cancel: cancel}
	i.gate.triggered, i.gate.open, i.versions.awaited, i.versions.changedByOther = false, false, false, false
	return i.inflight
}

// Complete records that the attempt acted on an item with digest d. Unless the item changes, schedule determines when
// the next attempt begins. If current is false, the attempt has detected a change by another client, and the next
// attempt must handle this change.
func (a *Attempt) Complete(d Digest, current bool, schedule Schedule) {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if !current {
		d = 0
	}
	a.item.inflight, a.item.versions.changedByOther = nil, !current
	a.item.gate.digest, a.item.gate.expected, a.item.gate.schedule = d, nil, schedule.toStored()
}

// CompleteWithoutRead records the end of an attempt that did not read the item. If the parameter `earliest` is zero,
// the recorded digest does not change, and the next attempt is not delayed. Otherwise, no trigger starts an attempt
// before this time, unless the item changes.
func (a *Attempt) CompleteWithoutRead(earliest time.Time) {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.item.inflight, a.item.gate.schedule = nil, Schedule{TriggersNotBefore: earliest}.toStored()
	if !earliest.IsZero() && a.item.lastWait != 0 {
		a.item.gate.digest = a.item.lastWait
	}
}

// GetEarliestStart returns the time before which no trigger starts an attempt, as the attempt before this one has set
// it.
func (a *Attempt) GetEarliestStart() time.Time {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	return a.item.gate.schedule.triggersNotBefore.toTime()
}

// Cancel cancels the attempt.
func (a *Attempt) Cancel(cause error) { a.cancel(cause) }

// Track records the work of an attempt that has no call in flight.
func (a *Attempt) Track(w Work) {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.work = &w
}

// StartCall records the start of a call. If a newer version of the item has arrived and requires that the call be
// cancelled, StartCall returns the cause, and the caller must not make the call.
func (a *Attempt) StartCall(w Work) error {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if a.latest != nil {
		if cause := getCancelCause(&w, a.latest); cause != nil {
			return cause
		}
	}
	a.work, a.inCall = &w, true
	return nil
}

// CompleteCall records that the call returned.
func (a *Attempt) CompleteCall() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.inCall = false
}

// GetWork returns the work that Track or StartCall recorded last, or nil.
func (a *Attempt) GetWork() *Work {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	return a.work
}

// SetDeadline cancels the attempt after the given time. It replaces the previous limit.
func (a *Attempt) SetDeadline(after time.Duration) {
	a.RemoveDeadline()
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.timer = a.clock.AfterFunc(max(after, 0), func() { a.cancel(ErrDeadline) })
}

// RemoveDeadline removes the limit.
func (a *Attempt) RemoveDeadline() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// Seal records that the hooks and the call of the attempt have returned. It returns false if the attempt was abandoned.
func (a *Attempt) Seal() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.sealed = !a.abandoned
	return a.sealed
}

// TryAbandon gives up an attempt whose hooks or call do not return. It returns false if Seal was called before, because
// the hooks and the call have returned then.
func (a *Attempt) TryAbandon() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.abandoned = !a.sealed
	return a.abandoned
}

// MarkAbandoned gives up an attempt that does not end although its hooks and its call have returned.
func (a *Attempt) MarkAbandoned() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.abandoned = true
}

// IsAbandoned reports whether the attempt was abandoned.
func (a *Attempt) IsAbandoned() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	return a.abandoned
}

// observe records a newer version of the item and cancels the call if that version requires it.
func (a *Attempt) observe(di *lsv1alpha1.DeployItem) {
	a.latest = di
	if a.inCall {
		if cause := getCancelCause(a.work, di); cause != nil {
			a.cancel(cause)
		}
	}
}

// getCancelCause returns why a newer version of the item requires the call to be cancelled, or nil if the version does
// not require a cancellation.
func getCancelCause(call *Work, seen *lsv1alpha1.DeployItem) error {
	if !isOlder(call.Item.ResourceVersion, seen.ResourceVersion) {
		return nil
	}
	if seen.UID != call.Item.UID {
		return ErrInterrupted
	}
	if call.Decision.Background {
		return nil
	}
	if call.Decision.Action != contract.ActionAbort && lsv1helper.HasOperation(seen.ObjectMeta, contract.AbortOperation) {
		return ErrAborted
	}
	if !contract.IsSameRun(seen, call.Item, call.Decision) {
		return ErrInterrupted
	}
	return nil
}
