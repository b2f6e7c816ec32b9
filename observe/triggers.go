// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Causes contains the reasons for one run of an item, and whether this run must check every object.
type Causes struct {
	// ForceResync means that the run must check every object, even if no watch reported a change.
	ForceResync bool
	// RecreateFinished means that the run must create objects again that have finished their work and are gone.
	RecreateFinished bool
	// Drifts contains the drifts that are not corrected yet.
	Drifts []PendingDrift

	requested bool      // Request was called
	notBefore time.Time // the earliest time that the calls of Request named
}

// isDue reports whether a drift or a call of Request requires a run, and when the run is due. If the correction of one
// object is delayed, this does not delay the correction of other objects.
func (c *Causes) isDue() (wanted bool, at time.Time) {
	wanted, at = c.requested, c.notBefore
	for _, correction := range c.listCorrectionTimes() {
		if !wanted || correction.Before(at) {
			wanted, at = true, correction
		}
	}
	return wanted, at
}

// listCorrectionTimes returns, for each drifted object, the time at which to correct it. All drifts of an object are
// corrected together.
func (c *Causes) listCorrectionTimes() map[Object]time.Time {
	out := map[Object]time.Time{}
	for _, d := range c.Drifts {
		if at, known := out[d.Object]; !known || d.NotBefore.After(at) {
			out[d.Object] = d.NotBefore
		}
	}
	return out
}

// FindDrift returns a drift of the object. It returns false if there is none.
func (c *Causes) FindDrift(object Object) (PendingDrift, bool) {
	i := slices.IndexFunc(c.Drifts, func(d PendingDrift) bool { return d.Object == object })
	if i < 0 {
		return PendingDrift{}, false
	}
	return c.Drifts[i], true
}

// request records a call of Triggers.Request.
func (c *Causes) request(notBefore time.Time) {
	if !c.requested || notBefore.Before(c.notBefore) {
		c.requested, c.notBefore = true, notBefore
	}
}

// add adds a drift. For each object and reason, only the latest drift is stored. The number of drifts is not limited
// otherwise: an object whose drift is dropped loses the time of its correction.
func (c *Causes) add(d PendingDrift) {
	i := slices.IndexFunc(c.Drifts, func(one PendingDrift) bool { return one.Object == d.Object && one.Reason == d.Reason })
	if i < 0 {
		c.Drifts = append(c.Drifts, d)
		return
	}
	c.Drifts[i] = d
}

// split divides the causes into those that a run at the given time handles, and the drifts whose correction is not due
// yet.
func (c Causes) split(now time.Time) (taken Causes, later []PendingDrift) {
	taken, all, times := c, c.Drifts, c.listCorrectionTimes()
	taken.Drifts = nil
	for _, d := range all {
		if times[d.Object].After(now) {
			later = append(later, d)
		} else {
			taken.Drifts = append(taken.Drifts, d)
		}
	}
	return taken, later
}

// Triggers decides when an item runs next. It collects the causes of the next run, and asks the library to reconcile
// the item when the first of them is due. It is safe for concurrent use.
type Triggers struct {
	clock     clock.WithDelayedExecution
	trigger   func()      // asks the library to reconcile the item
	requested atomic.Bool // the library was asked for a reconcile, and has not called CheckDue since then
	throttle  *throttle   // limits how often events trigger a reconcile while the item waits

	mu         sync.Mutex
	next       Causes
	timer      clock.Timer   // nil if no run is planned for later
	watchRetry time.Duration // the last result of AdvanceWatchRetry
}

// NewTriggers returns Triggers for an item. The function `trigger` asks the library to reconcile the item. It must not
// block.
func NewTriggers(clk clock.WithDelayedExecution, trigger func()) *Triggers {
	return &Triggers{clock: clk, trigger: trigger, throttle: newThrottle(clk, trigger)}
}

// setTimer sets the timer for the first cause. If that cause is already due, it sets no timer. In this case, it
// returns true unless the library has already been asked for a reconcile. The caller holds the lock.
func (t *Triggers) setTimer() (now bool) {
	t.stopTimer()
	if t.requested.Load() {
		return false
	}
	wanted, at := t.next.isDue()
	if !wanted {
		return false
	}
	if rest := at.Sub(t.clock.Now()); rest > 0 {
		t.timer = t.clock.AfterFunc(rest, t.requestReconcile)
		return false
	}
	t.requested.Store(true)
	return true
}

// stopTimer stops the timer. The caller holds the lock.
func (t *Triggers) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// requestReconcile asks the library to reconcile the item. The timer calls it. It takes no lock, because a fake clock
// holds its own lock while it calls requestReconcile, and a second lock could cause a deadlock.
func (t *Triggers) requestReconcile() {
	t.requested.Store(true)
	t.trigger()
}

// RequestIfDue asks the library to reconcile the item if a cause is due, unless it was asked already. If no cause is
// due yet, RequestIfDue sets the timer.
func (t *Triggers) RequestIfDue() {
	t.mu.Lock()
	t.setTimerAndUnlock()
}

// setTimerAndUnlock sets the timer for the first cause and releases the lock. If that cause is already due, there is no
// timer for it. In this case, setTimerAndUnlock asks the library to reconcile the item.
func (t *Triggers) setTimerAndUnlock() {
	now := t.setTimer()
	t.mu.Unlock()
	if now {
		t.trigger()
	}
}

// Request requests a run, not before the given time. The zero value means now. If several calls name different times,
// the earliest applies. One run fulfils all requests.
func (t *Triggers) Request(notBefore time.Time) {
	t.mu.Lock()
	defer t.setTimerAndUnlock()
	t.next.request(notBefore)
}

// Clear removes all causes. Call it when the item is removed from memory.
func (t *Triggers) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopTimer()
	t.next = Causes{}
}

// ForceResync makes the next run check every object, even if no watch reported a change. It does not request a run.
func (t *Triggers) ForceResync() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.ForceResync = true
}

// RecreateFinished makes the next run create objects again that have finished their work and are gone. It does not
// request a run.
func (t *Triggers) RecreateFinished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next.RecreateFinished = true
}

// AddDrift adds a drift. For the first drift of an object, it calls the function `count` to determine when to correct
// the object. The result applies to all drifts of the object until the object is corrected. AddDrift returns the
// pending drift, and reports whether it is the first drift of the object. Call RequestIfDue afterwards.
func (t *Triggers) AddDrift(d Drift, count func(Drift) Correction) (pending PendingDrift, first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pending, queued := t.next.FindDrift(d.Object)
	if !queued {
		pending.Correction = count(d)
		pending.NotBefore = t.clock.Now().Add(pending.Delay)
	}
	pending.Drift = d
	t.next.add(pending)
	return pending, !queued
}

// RemoveDrifts removes the drifts of an object that is being corrected.
func (t *Triggers) RemoveDrifts(object Object) {
	t.mu.Lock()
	defer t.setTimerAndUnlock()
	t.next.Drifts = slices.DeleteFunc(t.next.Drifts, func(d PendingDrift) bool { return d.Object == object })
}

// ListFights returns the pending drifts whose correction is delayed, because another writer changes the object again
// after each correction.
func (t *Triggers) ListFights() []PendingDrift {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(t.next.Drifts), func(d PendingDrift) bool { return !d.Fight })
}

// CheckDue reports whether a run is required, and when it is due. It must be called during a reconcile of the item,
// because it also marks the last request for a reconcile as handled. If the run is due later, it sets a timer.
func (t *Triggers) CheckDue() (bool, time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.requested.Store(false)
	wanted, at := t.next.isDue()
	if wanted && at.After(t.clock.Now()) {
		t.setTimer()
	}
	return wanted, at
}

// TakeCauses takes the causes for a run. If the run is a background run that need not check every object, drifts whose
// correction is not due yet remain. The result `later` contains the objects of these drifts.
func (t *Triggers) TakeCauses(background bool) (taken Causes, later map[Object]bool) {
	t.mu.Lock()
	defer t.setTimerAndUnlock()
	taken, t.next = t.next, Causes{}
	t.requested.Store(false)
	later = map[Object]bool{}
	if background && !taken.ForceResync {
		taken, t.next.Drifts = taken.split(t.clock.Now())
	}
	for _, d := range t.next.Drifts {
		later[d.Object] = true
	}
	return taken, later
}

// ReturnCauses adds the causes of a failed run again, because neither the watches nor the callers of Request report
// them again. For causes that are already due, it requests no run, because the library itself retries a failed run.
func (t *Triggers) ReturnCauses(taken Causes) {
	t.mu.Lock()
	defer t.mu.Unlock()
	since := t.next.Drifts
	t.next.Drifts = taken.Drifts
	for _, d := range since {
		t.next.add(d)
	}
	t.next.ForceResync = t.next.ForceResync || taken.ForceResync
	t.next.RecreateFinished = t.next.RecreateFinished || taken.RecreateFinished
	if taken.requested {
		t.next.request(taken.notBefore)
	}
	t.setTimer()
	t.requested.Store(false)
}

// NotifyChange triggers a reconcile of an item that waits, because an object for which it waits may have changed. Many
// calls lead to few reconciles: there is always one after the last call, at most one per second, and even fewer if
// calls continue and the reason for waiting stays the same.
func (t *Triggers) NotifyChange() { t.throttle.event() }

// SetWaitReason records the reason why the item waits. See NotifyChange.
func (t *Triggers) SetWaitReason(reason string) { t.throttle.setReason(reason) }

// StopWaiting cancels the reconcile that NotifyChange has planned. Call it when the item no longer waits.
func (t *Triggers) StopWaiting() { t.throttle.stop() }

// These constants are the minimum and maximum result of AdvanceWatchRetry.
const (
	minWatchRetry = 10 * time.Second
	maxWatchRetry = 5 * time.Minute
)

// AdvanceWatchRetry returns the time until the next attempt to watch the resources that could not be watched. The time
// doubles with each attempt. If `failed` is false, AdvanceWatchRetry returns 0, and the next time is the minimum again.
func (t *Triggers) AdvanceWatchRetry(failed bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !failed {
		t.watchRetry = 0
		return 0
	}
	t.watchRetry = min(max(2*t.watchRetry, minWatchRetry), maxWatchRetry)
	return t.watchRetry
}
