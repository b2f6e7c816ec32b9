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
	heal      time.Time // not before
	woken     bool      // somebody called Wake
	notBefore time.Time // the earliest that the callers named

	later map[watch.Object]bool // of a run: what is fought about and not healed yet
}

// due tells whether a run is wanted, and when.
func (w *wants) due() (bool, time.Time) {
	switch drifted := len(w.drifts) > 0; {
	case !drifted:
		return w.woken, w.notBefore
	case w.woken && w.notBefore.Before(w.heal):
		return true, w.notBefore
	}
	return true, w.heal
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

// drifted notes a drift. A fight is healed later.
func (i *item) drifted(d drift, notBefore time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.wants.drifts) < maxDrifts {
		i.wants.drifts = append(i.wants.drifts, d)
	}
	if notBefore.After(i.wants.heal) {
		i.wants.heal = notBefore
	}
}

// due tells whether a run is wanted, and when.
func (i *item) due() (bool, time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.wants.due()
}

// take returns what a run is about to do. A background run that comes before a
// fight is to be healed leaves that for later.
func (i *item) take(background bool, now time.Time) wants {
	i.mu.Lock()
	defer i.mu.Unlock()
	taken := i.wants
	i.wants = wants{}
	i.alarm.stop()
	if background && !taken.thorough && now.Before(taken.heal) {
		i.wants.heal = taken.heal
		taken.drifts, i.wants.drifts = split(taken.drifts)
		taken.later = map[watch.Object]bool{}
		for _, d := range i.wants.drifts {
			taken.later[d.Object] = true
		}
	}
	return taken
}

// split parts drifts into those to heal now and the fights.
func split(drifts []drift) (now, later []drift) {
	for _, d := range drifts {
		if d.Fight {
			later = append(later, d)
		} else {
			now = append(now, d)
		}
	}
	return now, later
}

// putBack notes again what a run wanted to do and could not: neither a watch
// nor whoever called Wake tells of it again. The library tries again by itself.
func (i *item) putBack(taken wants) {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := &i.wants
	w.drifts = append(taken.drifts, w.drifts...)
	w.drifts = w.drifts[:min(len(w.drifts), maxDrifts)]
	w.thorough = w.thorough || taken.thorough
	if taken.woken && (!w.woken || taken.notBefore.Before(w.notBefore)) {
		w.woken, w.notBefore = true, taken.notBefore
	}
}
