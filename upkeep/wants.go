// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// maxDrifts bounds what is remembered of an item's drift until it is healed.
const maxDrifts = 8

// wants is what the next run of an item is for.
type wants struct {
	thorough  bool      // it asks for every object
	drifts    []drift   // not healed yet
	woken     bool      // somebody called Wake
	notBefore time.Time // the earliest that the callers named

	later map[watch.Object]bool // of a run: what is fought about and not healed yet
}

// due tells whether a run is wanted, and when: an object that is fought about
// does not make others wait.
func (w *wants) due() (wanted bool, at time.Time) {
	wanted, at = w.woken, w.notBefore
	for _, heal := range w.heals() {
		if !wanted || heal.Before(at) {
			wanted, at = true, heal
		}
	}
	return wanted, at
}

// heals is when each object that drifted is to be put right. All that happened
// to it is put right in one.
func (w *wants) heals() map[watch.Object]time.Time {
	out := map[watch.Object]time.Time{}
	for _, d := range w.drifts {
		if at, known := out[d.Object]; !known || d.notBefore.After(at) {
			out[d.Object] = d.notBefore
		}
	}
	return out
}

// queued returns a drift of the object that waits to be put right, and reports whether there is one.
func (w *wants) queued(object watch.Object) (drift, bool) {
	for _, d := range w.drifts {
		if d.Object == object {
			return d, true
		}
	}
	return drift{}, false
}

// add queues a drift. What happened to an object in one way is queued once, with the latest that is
// known of it. If there are too many, the drift that is put right last is dropped: the run for
// another drift of the item then puts it right without an event.
func (w *wants) add(d drift) {
	for i := range w.drifts {
		if w.drifts[i].Object == d.Object && w.drifts[i].What == d.What {
			w.drifts[i] = d
			return
		}
	}
	if len(w.drifts) < maxDrifts {
		w.drifts = append(w.drifts, d)
		return
	}
	last := 0
	for i := range w.drifts {
		if w.drifts[i].notBefore.After(w.drifts[last].notBefore) {
			last = i
		}
	}
	if d.notBefore.Before(w.drifts[last].notBefore) {
		w.drifts[last] = d
	}
}

// alarm triggers the item when the first entry of its queue is due.
type alarm struct {
	timer clock.Timer // nil if nothing is queued for later
	rung  atomic.Bool // the library was triggered, and has not asked the hook since
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}

// schedule sets the alarm for the first entry of the queue. It reports whether that one is due and
// the library does not know. The lock is held.
func (i *item) schedule() (now bool) {
	i.alarm.stop()
	wanted, at := i.wants.due()
	if !wanted || i.alarm.rung.Load() {
		return false
	}
	if rest := at.Sub(i.clock.Now()); rest > 0 {
		i.alarm.timer = i.clock.AfterFunc(rest, i.ring)
		return false
	}
	i.alarm.rung.Store(true)
	return true
}

// ring is called when the alarm goes off. It takes no lock, because a fake clock calls it with its own.
func (i *item) ring() {
	i.alarm.rung.Store(true)
	i.trigger()
}

// reschedule triggers the item if something is due that the library does not know of, and sets the
// alarm otherwise.
func (i *item) reschedule() {
	i.mu.Lock()
	now := i.schedule()
	i.mu.Unlock()
	if now {
		i.trigger()
	}
}

// wake queues a wish for a run.
func (i *item) wake(notBefore time.Time) {
	i.mu.Lock()
	if !i.wants.woken || notBefore.Before(i.wants.notBefore) {
		i.wants.woken, i.wants.notBefore = true, notBefore
	}
	i.mu.Unlock()
	i.reschedule()
}

// sleep ends the alarm of an item that is forgotten.
func (i *item) sleep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.alarm.stop()
	i.wants = wants{}
}

// setThorough says that the next run asks for every object, whatever the watches know.
func (i *item) setThorough() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.thorough = true
}

// drifted queues a drift. heal says how to put it right; it is asked once for all that happens to an
// object until that. drifted returns what is queued, and reports whether it is the first of the object.
func (i *item) drifted(e watch.Event, heal func() watch.Heal) (d drift, first bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	d, waits := i.wants.queued(e.Object)
	if !waits {
		d.Heal = heal()
		d.notBefore = i.clock.Now().Add(d.Delay)
	}
	d.Event = e
	i.wants.add(d)
	return d, !waits
}

// healed takes the drifts of an object that is put right now out of the queue.
func (i *item) healed(object watch.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.drifts = slices.DeleteFunc(i.wants.drifts, func(d drift) bool { return d.Object == object })
	i.schedule()
}

// fights are the drifts in the queue that are put right later because they come back.
func (i *item) fights() []drift {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(i.wants.drifts), func(d drift) bool { return !d.Fight })
}

// due reports whether a run is wanted, and when. The library asks, so it need not be triggered for
// what is queued by now.
func (i *item) due() (bool, time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.alarm.rung.Store(false)
	wanted, at := i.wants.due()
	if wanted && at.After(i.clock.Now()) {
		i.schedule()
	}
	return wanted, at
}

// take returns what a run is about to do. A background run leaves in the queue
// what is fought about and not to be healed yet.
func (i *item) take(background bool, now time.Time) wants {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.wants
	i.wants = wants{}
	i.alarm.rung.Store(false)
	if background && !taken.thorough {
		taken.leave(&i.wants, now)
	}
	i.schedule()
	return taken
}

// leave moves the drifts of objects that are not to be healed yet to other wants.
func (w *wants) leave(to *wants, now time.Time) {
	w.later = map[watch.Object]bool{}
	for object, at := range w.heals() {
		if at.After(now) {
			w.later[object] = true
		}
	}
	all := w.drifts
	w.drifts = nil
	for _, d := range all {
		if w.later[d.Object] {
			to.drifts = append(to.drifts, d)
		} else {
			w.drifts = append(w.drifts, d)
		}
	}
}

// putBack queues again what a run wanted to do and could not: neither a watch
// nor a caller of Wake reports it again. For what is due the library tries again by itself.
func (i *item) putBack(taken wants) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := &i.wants
	since := w.drifts
	w.drifts = taken.drifts
	for _, d := range since {
		w.add(d)
	}
	w.thorough = w.thorough || taken.thorough
	if taken.woken && (!w.woken || taken.notBefore.Before(w.notBefore)) {
		w.woken, w.notBefore = true, taken.notBefore
	}
	i.schedule()
	i.alarm.rung.Store(false)
}
