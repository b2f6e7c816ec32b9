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

// Causes with which an Item cancels the attempt in flight.
var (
	ErrAborted     = errors.New("the deploy item was aborted")
	ErrInterrupted = errors.New("the job was interrupted")
	ErrDeadline    = errors.New("the deploy item's timeout passed")
)

// Work is what an attempt works on: a version of the item and what is due on it.
type Work struct {
	Item     *lsv1alpha1.DeployItem
	Decision contract.Decision
}

// Attempt is a reconcile in flight. Events cancel it, and the watchdog abandons it if it does not
// return. The lock of its Item guards it.
type Attempt struct {
	item   *Item
	clock  clock.WithDelayedExecution
	cancel context.CancelCauseFunc

	latest    *lsv1alpha1.DeployItem // newest version that an event brought
	work      *Work                  // newest work, also after its call returned
	inCall    bool
	timer     clock.Timer
	sealed    bool // no user code runs any more
	abandoned bool // the watchdog freed the worker
}

// Begin begins an attempt. cancel ends its context. Begin returns nil for an item in quarantine.
func (i *Item) Begin(clk clock.WithDelayedExecution, cancel context.CancelCauseFunc) *Attempt {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.quarantined {
		return nil
	}
	i.inflight = &Attempt{item: i, clock: clk, cancel: cancel}
	i.gate.triggered, i.versions.awaited, i.versions.foreign = false, false, false
	return i.inflight
}

// End notes that the attempt acted on an item with a digest, and that the next one is not to begin
// before a time unless the item changes. known is false if the attempt met a foreign change, which
// the next attempt has to look at.
func (a *Attempt) End(d Digest, known bool, notBefore time.Time) {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if !known {
		d = Digest{}
	}
	a.item.inflight, a.item.versions.foreign = nil, !known
	a.item.gate.digest, a.item.gate.expected, a.item.gate.notBefore = d, nil, notBefore
}

// EndUnread notes the end of an attempt that did not get to see the item. What is known about it
// stays, and nothing holds back the next attempt.
func (a *Attempt) EndUnread() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.item.inflight, a.item.gate.notBefore = nil, time.Time{}
}

// Cancel cancels the attempt.
func (a *Attempt) Cancel(cause error) { a.cancel(cause) }

// Track notes what the attempt works on while no call is in flight.
func (a *Attempt) Track(w Work) {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.work = &w
}

// EnterCall notes that a call begins. It returns the cause if an event since the item was read
// already asks to cancel the call.
func (a *Attempt) EnterCall(w Work) error {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if a.latest != nil {
		if cause := causeToCancel(&w, a.latest); cause != nil {
			return cause
		}
	}
	a.work, a.inCall = &w, true
	return nil
}

// LeaveCall notes that the call returned.
func (a *Attempt) LeaveCall() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.inCall = false
}

// Work returns what the attempt worked on last, or nil.
func (a *Attempt) Work() *Work {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	return a.work
}

// Limit cancels the attempt after a time. It replaces the former limit.
func (a *Attempt) Limit(after time.Duration) {
	a.Unlimit()
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.timer = a.clock.AfterFunc(max(after, 0), func() { a.cancel(ErrDeadline) })
}

// Unlimit removes the limit.
func (a *Attempt) Unlimit() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// Seal notes that no user code of the attempt runs any more. It reports false if the attempt was abandoned.
func (a *Attempt) Seal() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.sealed = !a.abandoned
	return a.sealed
}

// Abandon gives up on an attempt whose user code does not return. It reports false if the attempt is sealed.
func (a *Attempt) Abandon() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.abandoned = !a.sealed
	return a.abandoned
}

// AbandonSealed gives up on an attempt that does not end although it is sealed.
func (a *Attempt) AbandonSealed() {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	a.abandoned = true
}

// Abandoned reports whether the attempt was given up.
func (a *Attempt) Abandoned() bool {
	a.item.mu.Lock()
	defer a.item.mu.Unlock()
	return a.abandoned
}

// observe takes note of a newer version of the item and cancels the call if the version asks for that.
func (a *Attempt) observe(di *lsv1alpha1.DeployItem) {
	a.latest = di
	if a.inCall {
		if cause := causeToCancel(a.work, di); cause != nil {
			a.cancel(cause)
		}
	}
}

// causeToCancel compares what a call works on with a version that was seen since.
func causeToCancel(call *Work, seen *lsv1alpha1.DeployItem) error {
	if !older(call.Item.ResourceVersion, seen.ResourceVersion) {
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
	if !contract.SameRun(seen, call.Item, call.Decision) {
		return ErrInterrupted
	}
	return nil
}
