// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// triggers contains the reasons for the next run of an item, and whether this run must be thorough.
type triggers struct {
	thorough  bool      // the run must check every object, even if no watch reported a change
	rerun     bool      // the run must create objects again that have finished their work and are gone
	drifts    []drift   // the drifts that are not corrected yet
	woken     bool      // Wake was called
	notBefore time.Time // the earliest time that the calls of Wake requested
}

// due reports whether a drift or a call of Wake requests a run, and when the run is due. If the correction of one
// object is delayed, this does not delay the correction of other objects.
func (t *triggers) due() (wanted bool, at time.Time) {
	wanted, at = t.woken, t.notBefore
	for _, correction := range t.times() {
		if !wanted || correction.Before(at) {
			wanted, at = true, correction
		}
	}
	return wanted, at
}

// times returns, for each drifted object, the time at which to correct it. All drifts of an object are corrected
// together.
func (t *triggers) times() map[watch.Object]time.Time {
	out := map[watch.Object]time.Time{}
	for _, d := range t.drifts {
		if at, known := out[d.Object]; !known || d.notBefore.After(at) {
			out[d.Object] = d.notBefore
		}
	}
	return out
}

// find returns a drift of the object. It returns false if there is none.
func (t *triggers) find(object watch.Object) (drift, bool) {
	i := slices.IndexFunc(t.drifts, func(d drift) bool { return d.Object == object })
	if i < 0 {
		return drift{}, false
	}
	return t.drifts[i], true
}

// wake records a call of Keeper.Wake.
func (t *triggers) wake(notBefore time.Time) {
	if !t.woken || notBefore.Before(t.notBefore) {
		t.woken, t.notBefore = true, notBefore
	}
}

// add adds a drift. For each object and kind of drift, only the latest drift is stored. The number of drifts is not
// limited otherwise: an object whose drift is dropped loses the time of its correction.
func (t *triggers) add(d drift) {
	i := slices.IndexFunc(t.drifts, func(one drift) bool { return one.Object == d.Object && one.What == d.What })
	if i < 0 {
		t.drifts = append(t.drifts, d)
		return
	}
	t.drifts[i] = d
}

// split divides the triggers into those that a run at the given time handles, and the drifts whose correction is not
// due yet.
func (t triggers) split(now time.Time) (taken triggers, later []drift) {
	taken, all, times := t, t.drifts, t.times()
	taken.drifts = nil
	for _, d := range all {
		if times[d.Object].After(now) {
			later = append(later, d)
		} else {
			taken.drifts = append(taken.drifts, d)
		}
	}
	return taken, later
}

// queue contains the triggers for the next runs of an item. When the first of them is due, it asks the library to
// reconcile the item.
type queue struct {
	clock   clock.WithDelayedExecution
	trigger func()      // asks the library to reconcile the item
	asked   atomic.Bool // the library was asked for a reconcile, and has not called the hook since then

	mu    sync.Mutex
	next  triggers
	timer clock.Timer // nil if no run is planned for later
}

// schedule sets the timer for the first trigger. If that trigger is already due, it sets no timer. In this case, it
// returns true unless the library has already been asked for a reconcile. The caller holds the lock.
func (q *queue) schedule() (now bool) {
	q.stop()
	if q.asked.Load() {
		return false
	}
	wanted, at := q.next.due()
	if !wanted {
		return false
	}
	if rest := at.Sub(q.clock.Now()); rest > 0 {
		q.timer = q.clock.AfterFunc(rest, q.ring)
		return false
	}
	q.asked.Store(true)
	return true
}

// stop stops the timer. The caller holds the lock.
func (q *queue) stop() {
	if q.timer != nil {
		q.timer.Stop()
		q.timer = nil
	}
}

// ring asks the library to reconcile the item. The timer calls it. It takes no lock, because a fake clock holds its own
// lock while it calls ring, and a second lock could cause a deadlock.
func (q *queue) ring() {
	q.asked.Store(true)
	q.trigger()
}

// reschedule asks the library to reconcile the item if a trigger is due, unless it was asked already. If no trigger is
// due yet, reschedule sets the timer.
func (q *queue) reschedule() {
	q.mu.Lock()
	q.unlock()
}

// unlock sets the timer for the first trigger and releases the lock. If that trigger is already due, there is no timer
// for it. In this case, unlock asks the library to reconcile the item.
func (q *queue) unlock() {
	now := q.schedule()
	q.mu.Unlock()
	if now {
		q.trigger()
	}
}

// wake adds a call of Keeper.Wake to the queue.
func (q *queue) wake(notBefore time.Time) {
	q.mu.Lock()
	defer q.unlock()
	q.next.wake(notBefore)
}

// clear removes all triggers. It is called when the item is removed from memory.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stop()
	q.next = triggers{}
}

// setThorough makes the next run check every object, even if no watch reported a change.
func (q *queue) setThorough() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next.thorough = true
}

// setRerun makes the next run create objects again that have finished their work and are gone.
func (q *queue) setRerun() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next.rerun = true
}

// drifted adds a drift to the queue. For the first drift of an object, it calls the function `heal` to determine when
// to correct the object. The result applies to all drifts of the object until the object is corrected. The method
// returns the queued drift, and reports whether it is the first drift of the object.
func (q *queue) drifted(e watch.Event, heal func(watch.Event) watch.Heal) (d drift, first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	d, queued := q.next.find(e.Object)
	if !queued {
		d.Heal = heal(e)
		d.notBefore = q.clock.Now().Add(d.Delay)
	}
	d.Event = e
	q.next.add(d)
	return d, !queued
}

// corrected removes the drifts of an object that is being corrected.
func (q *queue) corrected(object watch.Object) {
	q.mu.Lock()
	defer q.unlock()
	q.next.drifts = slices.DeleteFunc(q.next.drifts, func(d drift) bool { return d.Object == object })
}

// fights returns the queued drifts whose correction is delayed, because another writer changes the object again after
// each correction.
func (q *queue) fights() []drift {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(q.next.drifts), func(d drift) bool { return !d.Fight })
}

// due reports whether the queue contains a drift or a call of Wake, and when the run for it is due. It is called by the
// hook "wake", that is, during a reconcile. A timer is therefore necessary only if the run is due later.
func (q *queue) due() (bool, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked.Store(false)
	wanted, at := q.next.due()
	if wanted && at.After(q.clock.Now()) {
		q.schedule()
	}
	return wanted, at
}

// take takes the triggers for a run from the queue. If the run is a background run that is not thorough, drifts whose
// correction is not due yet remain in the queue. The result `later` contains the objects of these drifts.
func (q *queue) take(background bool) (taken triggers, later map[watch.Object]bool) {
	q.mu.Lock()
	defer q.unlock()
	taken, q.next = q.next, triggers{}
	q.asked.Store(false)
	later = map[watch.Object]bool{}
	if background && !taken.thorough {
		taken, q.next.drifts = taken.split(q.clock.Now())
	}
	for _, d := range q.next.drifts {
		later[d.Object] = true
	}
	return taken, later
}

// putBack adds the triggers of a failed run to the queue again, because neither the watches nor the callers of Wake
// report them again. For triggers that are already due, it requests no run, because the library itself retries a failed
// run.
func (q *queue) putBack(taken triggers) {
	q.mu.Lock()
	defer q.mu.Unlock()
	since := q.next.drifts
	q.next.drifts = taken.drifts
	for _, d := range since {
		q.next.add(d)
	}
	q.next.thorough, q.next.rerun = q.next.thorough || taken.thorough, q.next.rerun || taken.rerun
	if taken.woken {
		q.next.wake(taken.notBefore)
	}
	q.schedule()
	q.asked.Store(false)
}
