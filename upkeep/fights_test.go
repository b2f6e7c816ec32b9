// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/observe"
)

// TestPostponedDrift ensures that a postponed correction is never lost. It covers all reasons for which the library
// calls the deployer.
func TestPostponedDrift(t *testing.T) {
	postponed := func(t *testing.T) *world {
		w := newWorld(t)
		for range 3 {
			w.begin(true).Take()
			w.drift("fought")
		}
		w.wantTriggers(3) // the third trigger starts a run that sets the condition
		w.begin(true).Take()
		return w
	}
	// healed checks that the item is triggered when the delay is over, and that the run then corrects the object.
	healed := func(w *world) {
		w.Helper()
		w.wantTriggers(0)
		w.clock.Step(10 * time.Second)
		w.wantTriggers(1)
		w.wants(true, 0)
		r := w.begin(true)
		if r.Take(); len(r.corrections.causes.Drifts) != 1 || len(r.corrections.later) != 0 {
			w.Errorf("the run heals %v and leaves %v", r.corrections.causes.Drifts, r.corrections.later)
		}
	}
	t.Run("has an alarm of its own [F23]", func(t *testing.T) {
		healed(postponed(t))
	})
	t.Run("keeps its alarm when a run for something else leaves it [F23]", func(t *testing.T) {
		w := postponed(t)
		w.keeper.Wake(w.item.UID, time.Time{})
		w.wantTriggers(1)
		r := w.begin(true)
		r.Take()
		w.settled(r)
		r.Finished()
		healed(w)
	})
	t.Run("keeps its alarm when that run fails [F23]", func(t *testing.T) {
		w := postponed(t)
		w.keeper.Wake(w.item.UID, w.clock.Now().Add(time.Hour))
		r := w.begin(true)
		r.Take()
		r.GiveBack()
		healed(w)
	})
	t.Run("keeps its alarm beside a wish for later [F23]", func(t *testing.T) {
		w := postponed(t)
		w.keeper.Wake(w.item.UID, w.clock.Now().Add(time.Hour))
		w.wants(false, 10*time.Second)
		healed(w)
	})
	t.Run("counts once however often the other writes until then [F23]", func(t *testing.T) {
		w := postponed(t)
		for range 20 {
			w.drift("fought")
		}
		healed(w)
		w.drift("fought")
		w.begin(true).Take()
		w.wants(false, 20*time.Second)
	})
	t.Run("while the item waits is not lost with the end of waiting [F23]", func(t *testing.T) {
		w := newWorld(t)
		r := w.begin(true)
		r.Take()
		if _, _, waits := deployerlib.AsWait(r.Wait("test", 0, "something", time.Minute)); !waits {
			t.Fatal("the run does not wait")
		}
		w.drift("a")
		w.wantTriggers(0)
		r.Finished()
		w.wantTriggers(1)
		w.wants(true, 0)
	})
}

// TestRandomFights changes an object at random times, and starts runs for random reasons. After the fight, the object
// must be corrected within the announced delay.
func TestRandomFights(t *testing.T) {
	t.Run("end healed in time [F23]", endHealed)
}

func endHealed(t *testing.T) {
	for seed := range uint64(50) {
		f := &fightTest{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 1))}
		f.keeper.clusters.fights = observe.NewFightDetector(observe.FightOptions{Clock: f.clock, FirstDelay: 4 * time.Second, MaxDelay: 16 * time.Second})
		for f.clock.Since(noon) < 8*time.Second {
			f.step(true)
		}
		until := f.clock.Now()
		for _, fight := range f.keeper.items.find(f.item.UID).triggers.ListFights() {
			until = fight.NotBefore
		}
		for f.edited && !f.clock.Now().After(until.Add(100*time.Millisecond)) {
			f.step(false)
		}
		if f.edited {
			t.Errorf("seed %d: not healed at %s, announced for %s", seed, f.clock.Since(noon), until.Sub(noon))
		}
		if f.heals > 4 {
			t.Errorf("seed %d: %d heals in 8 s of a fight with delays of 4 s and more", seed, f.heals)
		}
	}
}

// fightTest contains the state of one simulated fight.
type fightTest struct {
	*world

	random *rand.Rand
	edited bool
	heals  int
}

// step advances the clock by a tenth of a second.
func (f *fightTest) step(fight bool) {
	f.begin(true)
	if fight && f.random.IntN(3) == 0 {
		f.edited = true
		f.drift("fought")
	}
	if f.random.IntN(20) == 0 {
		f.keeper.Wake(f.item.UID, f.clock.Now().Add(time.Duration(f.random.IntN(3000))*time.Millisecond))
	}
	f.mu.Lock()
	triggered := f.triggers > 0
	f.triggers = 0
	f.mu.Unlock()
	if triggered { // the library calls the hook only after a trigger; the test ignores RequeueAfter, because it may be lost
		if run, _ := f.ask(f.keeper.Hooks(nil)); run {
			f.run()
		}
	}
	f.clock.Step(100 * time.Millisecond)
}

// run performs a background run, which sometimes fails. It retries a failed run immediately, as the library does.
func (f *fightTest) run() {
	r := f.begin(true)
	r.Take()
	if f.random.IntN(4) == 0 {
		r.GiveBack()
		r = f.begin(true)
		r.Take()
	}
	if len(r.corrections.later) == 0 && f.edited {
		f.edited = false
		f.heals++
	}
	f.settled(r)
	r.Finished()
}
