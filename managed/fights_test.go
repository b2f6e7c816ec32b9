// SPDX-License-Identifier: Apache-2.0

package managed

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
	postponed := func(t *testing.T) *testEnv {
		w := newTestEnv(t)
		for range 3 {
			w.begin(true).TakeTriggers()
			w.reportDrift("fought")
		}
		w.expectTriggers(3) // the third trigger starts a run that sets the condition
		w.begin(true).TakeTriggers()
		return w
	}
	// healed checks that the item is triggered when the delay is over, and that the run then corrects the object.
	healed := func(w *testEnv) {
		w.Helper()
		w.expectTriggers(0)
		w.clock.Step(10 * time.Second)
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
		r := w.begin(true)
		if r.TakeTriggers(); len(r.corrections.causes.Drifts) != 1 || len(r.corrections.delayed) != 0 {
			w.Errorf("the run heals %v and leaves %v", r.corrections.causes.Drifts, r.corrections.delayed)
		}
	}
	t.Run("a postponed drift has its own timer [F23]", func(t *testing.T) {
		healed(postponed(t))
	})
	t.Run("a postponed drift keeps its timer when a run for another reason does not correct it [F23]", func(t *testing.T) {
		w := postponed(t)
		w.manager.Trigger(w.item.UID, time.Time{})
		w.expectTriggers(1)
		r := w.begin(true)
		r.TakeTriggers()
		w.finishRun(r)
		r.Finish()
		healed(w)
	})
	t.Run("a postponed drift keeps its timer when a run for another reason fails [F23]", func(t *testing.T) {
		w := postponed(t)
		w.manager.Trigger(w.item.UID, w.clock.Now().Add(time.Hour))
		r := w.begin(true)
		r.TakeTriggers()
		r.ReturnTriggers()
		healed(w)
	})
	t.Run("a postponed drift keeps its timer if a later run is requested [F23]", func(t *testing.T) {
		w := postponed(t)
		w.manager.Trigger(w.item.UID, w.clock.Now().Add(time.Hour))
		w.expectHookResult(false, 10*time.Second)
		healed(w)
	})
	t.Run("a postponed drift counts once, regardless of how often the other client writes until then [F23]", func(t *testing.T) {
		w := postponed(t)
		for range 20 {
			w.reportDrift("fought")
		}
		healed(w)
		w.reportDrift("fought")
		w.begin(true).TakeTriggers()
		w.expectHookResult(false, 20*time.Second)
	})
	t.Run("a drift that occurs while the item waits is not lost when the item stops waiting [F23]", func(t *testing.T) {
		w := newTestEnv(t)
		r := w.begin(true)
		r.TakeTriggers()
		if _, _, waits := deployerlib.AsWait(r.NewWaitError("test", 0, "something", time.Minute)); !waits {
			t.Fatal("the run does not wait")
		}
		w.reportDrift("a")
		w.expectTriggers(0)
		r.Finish()
		w.expectTriggers(1)
		w.expectHookResult(true, 0)
	})
}

// TestRandomFightsEndWithCorrectedObjects changes an object at random times, and starts runs for random reasons. After
// the fight, the object must be corrected within the announced delay.
func TestRandomFightsEndWithCorrectedObjects(t *testing.T) {
	t.Run("each object is corrected in time after a random fight [F23]", testRandomFights)
}

func testRandomFights(t *testing.T) {
	for seed := range uint64(50) {
		f := &fightTest{testEnv: newTestEnv(t), random: rand.New(rand.NewPCG(seed, 1))}
		f.manager.clusters.fights = observe.NewFightDetector(observe.FightOptions{Clock: f.clock, FirstDelay: 4 * time.Second, MaxDelay: 16 * time.Second})
		for f.clock.Since(startTime) < 8*time.Second {
			f.step(true)
		}
		until := f.clock.Now()
		for _, fight := range f.manager.items.find(f.item.UID).triggers.ListFights() {
			until = fight.NotBefore
		}
		for f.edited && !f.clock.Now().After(until.Add(100*time.Millisecond)) {
			f.step(false)
		}
		if f.edited {
			t.Errorf("seed %d: not healed at %s, announced for %s", seed, f.clock.Since(startTime), until.Sub(startTime))
		}
		if f.heals > 4 {
			t.Errorf("seed %d: %d heals in 8 s of a fight with delays of 4 s and more", seed, f.heals)
		}
	}
}

// fightTest contains the state of one simulated fight.
type fightTest struct {
	*testEnv

	random *rand.Rand
	edited bool
	heals  int
}

// step advances the clock by a tenth of a second.
func (f *fightTest) step(fight bool) {
	f.begin(true)
	if fight && f.random.IntN(3) == 0 {
		f.edited = true
		f.reportDrift("fought")
	}
	if f.random.IntN(20) == 0 {
		f.manager.Trigger(f.item.UID, f.clock.Now().Add(time.Duration(f.random.IntN(3000))*time.Millisecond))
	}
	f.mu.Lock()
	triggered := f.triggers > 0
	f.triggers = 0
	f.mu.Unlock()
	if triggered { // the library calls the hook only after a trigger; the test ignores RequeueAfter, because it may be lost
		if run, _ := f.runHooks(f.manager.NewHooks(nil)); run {
			f.run()
		}
	}
	f.clock.Step(100 * time.Millisecond)
}

// run performs a background run, which sometimes fails. It retries a failed run immediately, as the library does.
func (f *fightTest) run() {
	r := f.begin(true)
	r.TakeTriggers()
	if f.random.IntN(4) == 0 {
		r.ReturnTriggers()
		r = f.begin(true)
		r.TakeTriggers()
	}
	if len(r.corrections.delayed) == 0 && f.edited {
		f.edited = false
		f.heals++
	}
	f.finishRun(r)
	r.Finish()
}
