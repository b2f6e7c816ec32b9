// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
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

// add notes a drift. If there are too many, the one that is put right last is
// given up: a run then puts it right without telling.
func (w *wants) add(d drift) {
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

// alarm triggers an item when its wish is due. It holds no wish itself.
type alarm struct {
	timer clock.Timer // nil: nobody needs to be told
	told  bool        // the library knows of the wish
}

// stop ends the timer.
func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	*a = alarm{}
}

// wake notes the wish for a run. trigger is called at once, or when the wish is
// due; not at all when an earlier call saw to that already.
func (i *item) wake(notBefore time.Time, clk clock.WithDelayedExecution, trigger func()) {
	if i.note(notBefore, clk, trigger) {
		trigger()
	}
}

// note is wake but for the trigger: true tells to do that.
func (i *item) note(notBefore time.Time, clk clock.WithDelayedExecution, trigger func()) (now bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	earlier := !i.wants.woken || notBefore.Before(i.wants.notBefore)
	if earlier {
		i.wants.woken, i.wants.notBefore = true, notBefore
	} else if i.alarm.told {
		return false
	}
	i.alarm.stop()
	i.alarm.told = true
	rest := i.wants.notBefore.Sub(clk.Now())
	if rest <= 0 {
		return true
	}
	i.alarm.timer = clk.AfterFunc(rest, trigger)
	return false
}

// sleep ends the alarm of an item that is forgotten.
func (i *item) sleep() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.alarm.stop()
}

// setThorough says that the next run asks for every object, whatever the watches know.
func (i *item) setThorough() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.thorough = true
}

// drifted notes a drift.
func (i *item) drifted(d drift) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wants.add(d)
}

// due tells whether a run is wanted, and when.
func (i *item) due() (bool, time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.wants.due()
}

// take returns what a run is about to do. A background run leaves for later
// what is fought about and not to be healed yet.
func (i *item) take(background bool, now time.Time) wants {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.wants
	i.wants = wants{}
	i.alarm.stop()
	if background && !taken.thorough {
		taken.leave(&i.wants, now)
	}
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

// putBack notes again what a run wanted to do and could not: neither a watch
// nor whoever called Wake tells of it again. The library tries again by itself.
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
}
