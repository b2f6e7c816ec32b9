// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/deployerkit/deployerkit/apply/watch"
)

// maxDrifts limits how much drift of an item is remembered until it is corrected.
const maxDrifts = 8

// wants contains the triggers of the next run of an item.
type wants struct {
	thorough  bool      // every object is requested
	drifts    []drift   // not corrected yet
	woken     bool      // Wake was called
	notBefore time.Time // the earliest time of all calls

	later map[watch.Object]bool // of a run: objects that are fought about and not corrected yet
}

// due reports whether a run is wanted, and when. An object that is fought about does not delay others.
func (w *wants) due() (wanted bool, at time.Time) {
	wanted, at = w.woken, w.notBefore
	for _, heal := range w.heals() {
		if !wanted || heal.Before(at) {
			wanted, at = true, heal
		}
	}
	return wanted, at
}

// heals returns when each object that drifted is to be corrected. All drift of an object is corrected at once.
func (w *wants) heals() map[watch.Object]time.Time {
	out := map[watch.Object]time.Time{}
	for _, d := range w.drifts {
		if at, known := out[d.Object]; !known || d.notBefore.After(at) {
			out[d.Object] = d.notBefore
		}
	}
	return out
}

// queued returns a queued drift of the object, and reports whether there is one.
func (w *wants) queued(object watch.Object) (drift, bool) {
	for _, d := range w.drifts {
		if d.Object == object {
			return d, true
		}
	}
	return drift{}, false
}

// add queues a drift. Drift of the same kind of the same object is queued once, with the latest information. If there
// are too many entries, the drift that is corrected last is dropped. The run for another drift of the item then
// corrects it without an event.
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

// schedule sets the alarm for the first entry of the queue. It reports whether that entry is due and the library does
// not know it. The caller holds the lock.
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

// ring is called when the alarm goes off. It takes no lock, because a fake clock calls it while holding its own.
func (i *item) ring() {
	i.alarm.rung.Store(true)
	i.trigger()
}

// reschedule triggers the item if an entry is due that the library does not know. Otherwise it sets the alarm.
func (i *item) reschedule() {
	i.mu.Lock()
	now := i.schedule()
	i.mu.Unlock()
	if now {
		i.trigger()
	}
}

// wake queues a request for a run.
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

// setThorough makes the next run request every object, whatever the watches know.
func (i *item) setThorough() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.thorough = true
}

// drifted queues a drift. heal decides how to correct it, and is called once for all drift of an object until the
// correction. drifted returns the queued drift, and reports whether it is the first of the object.
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

// healed removes the drifts of an object that is being corrected from the queue.
func (i *item) healed(object watch.Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.drifts = slices.DeleteFunc(i.wants.drifts, func(d drift) bool { return d.Object == object })
	i.schedule()
}

// fights returns the queued drifts whose correction is delayed because they come back.
func (i *item) fights() []drift {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(i.wants.drifts), func(d drift) bool { return !d.Fight })
}

// due reports whether a run is wanted, and when. The library asks, so it need not be triggered for entries that are
// queued by now.
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

// take returns the triggers of a run. A background run leaves objects in the queue that are fought about and not to
// be corrected yet.
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

// leave moves the drifts of objects that are not to be corrected yet to other wants.
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

// putBack queues the triggers of a failed run again, because neither a watch nor a caller of Wake reports them again.
// The library retries by itself what is due.
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
