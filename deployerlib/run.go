// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"sync"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	lsv1helper "github.com/gardener/landscaper/apis/core/v1alpha1/helper"
	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/contract"
)

// run is one pass in flight, seen from outside: event handlers cancel it, the
// watchdog gives up on it.
type run struct {
	clock  clock.WithTickerAndDelayedExecution
	cancel context.CancelCauseFunc

	mu         sync.Mutex
	latest     *lsv1alpha1.DeployItem // newest item that an event brought
	inCall     *callInfo              // while the deployer runs
	last       *callInfo              // the newest call, also after it returned
	timer      clock.Timer            // deadline
	abandoned  bool                   // the watchdog freed the worker
	concluding bool                   // user code returned, only our own writes are left
}

// callInfo is what one deployer call works on, fixed when it begins.
type callInfo struct {
	item     *lsv1alpha1.DeployItem
	decision contract.Decision
}

// observe notes a newer version of the item and cancels the running call if
// that is what the version asks for. It never blocks.
func (r *run) observe(di *lsv1alpha1.DeployItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest = di
	if r.inCall != nil {
		if cause := causeToCancel(r.inCall, di); cause != nil {
			r.cancel(cause)
		}
	}
}

// enter marks the beginning of a deployer call. It returns the cause when an
// event that came since the item was read already asks to cancel it.
func (r *run) enter(c *cycle) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := infoOf(c)
	if r.latest != nil {
		if cause := causeToCancel(info, r.latest); cause != nil {
			return cause
		}
	}
	r.inCall, r.last = info, info
	return nil
}

// leave marks the end of the call.
func (r *run) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inCall = nil
}

// stopClock ends the limit on the pass.
func (r *run) stopClock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// infoOf is what a pass works on now: once its start is stored, the run is not new any more.
func infoOf(c *cycle) *callInfo {
	info := &callInfo{item: c.base, decision: c.decision}
	info.decision.New = info.decision.New && !c.started
	return info
}

// track notes what the pass works on while no call runs.
func (r *run) track(c *cycle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = infoOf(c)
}

// limit cancels the pass after a time; the newest limit counts.
func (r *run) limit(after time.Duration) {
	r.stopClock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = r.clock.AfterFunc(max(after, 0), func() { r.cancel(ErrDeadline) })
}

// lastCall is what the pass worked on last.
func (r *run) lastCall() *callInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// conclude notes that no user code of the pass runs any more. false: the
// watchdog gave up on the pass before.
func (r *run) conclude() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.concluding = !r.abandoned
	return r.concluding
}

// abandonUnlessConcluding gives up on a pass whose user code does not return.
func (r *run) abandonUnlessConcluding() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = !r.concluding
	return r.abandoned
}

// forsake gives up on a pass that hangs in an Abort after an interrupt.
func (r *run) forsake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.abandoned = true
}

// isAbandoned tells whether the watchdog gave up on this pass.
func (r *run) isAbandoned() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.abandoned
}

// causeToCancel compares the item of a running call with a version seen since.
func causeToCancel(call *callInfo, seen *lsv1alpha1.DeployItem) error {
	if !older(call.item.ResourceVersion, seen.ResourceVersion) {
		return nil
	}
	if seen.UID != call.item.UID {
		return ErrInterrupted
	}
	if call.decision.Action != contract.Abort && lsv1helper.HasOperation(seen.ObjectMeta, contract.AbortOperation) && !call.decision.Background {
		return ErrAborted
	}
	if !call.decision.Background && !contract.SameRun(seen, call.item, call.decision) {
		return ErrInterrupted
	}
	return nil
}
