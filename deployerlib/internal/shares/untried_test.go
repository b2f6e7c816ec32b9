// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/targets"
)

// simulation simulates targets that stop responding when an item of them runs. It advances in steps of
// healthCheckInterval.
type simulation struct {
	*testShares

	now     time.Duration
	pending []string                 // items that are not running
	began   map[string]time.Duration // when each running item of a hostile target began
	started map[string]time.Duration // when each item first began
	good    map[string]bool          // the targets that respond
	idle    bool                     // whether the runs on all other targets take minutes without stalling
}

func newSimulation(t *testing.T, workers int, good ...string) *simulation {
	s := &simulation{testShares: newTestShares(t, workers), began: map[string]time.Duration{}, started: map[string]time.Duration{}, good: map[string]bool{}}
	for _, place := range good {
		s.good[place] = true
	}
	return s
}

// requestTimeout is how long a run on a hostile target takes.
const requestTimeout = time.Minute

// addItems adds items, which request a share at once.
func (s *simulation) addItems(items ...string) {
	s.pending = append(s.pending, items...)
	s.requestShares(items...)
}

// requestShares requests shares. Items of good targets end at once.
func (s *simulation) requestShares(items ...string) {
	for _, item := range s.acquire(items...) {
		_, place := parseItem(item)
		if _, again := s.started[item]; !again {
			s.started[item] = s.now
		}
		s.pending = slices.DeleteFunc(s.pending, func(other string) bool { return other == item })
		if s.good[place.Namespace+"/"+place.Target] {
			s.release(item)
			continue
		}
		s.began[item] = s.now
	}
}

// step simulates the given time.
func (s *simulation) step(d time.Duration) {
	for end := s.now + d; s.now < end; {
		s.now += healthCheckInterval
		for item, began := range s.began {
			_, place := parseItem(item)
			name := place.Namespace + "/" + place.Target
			switch ran := s.now - began; {
			case s.idle:
			case ran >= requestTimeout:
				s.health[name] = targets.HealthBad
				delete(s.began, item)
				s.release(item)
				s.addItems(item) // the retry
			case ran >= 2*time.Second:
				s.health[name] = targets.HealthBad
			default:
				s.health[name] = targets.HealthStalled
			}
		}
		s.runTimers()
		offered := s.offered
		s.offered = nil
		s.requestShares(offered...)
	}
}

// newHostileItems returns three items for each of n hostile targets in their own namespaces. The items are ordered as
// if all targets had been created at the same time.
func newHostileItems(n int) (out []string) {
	for i := range 3 {
		for target := range n {
			out = append(out, fmt.Sprintf("evil%d/t/%d", target, i))
		}
	}
	return out
}

func TestUntriedTargets(t *testing.T) {
	const most = 2 * time.Second
	for _, n := range []int{4, 12, 40, 100} {
		t.Run(fmt.Sprintf("an untried target starts within 2 s beside %d targets that stop responding [F107]", n), func(t *testing.T) {
			for _, wait := range []time.Duration{0, time.Second, 10 * time.Second, 70 * time.Second, 5 * time.Minute} {
				s := newSimulation(t, 10, "good/new")
				s.addItems(newHostileItems(n)...)
				s.step(wait)
				arrived := s.now
				s.addItems("good/new/1")
				s.step(most)
				if began, ok := s.started["good/new/1"]; !ok {
					t.Errorf("after %s, it does not start within %s", wait, most)
				} else if began-arrived > most {
					t.Errorf("after %s, it starts after %s", wait, began-arrived)
				}
			}
		})
	}
	t.Run("an untried target starts within 2 s if 40 others arrive after it [F107]", func(t *testing.T) {
		s := newSimulation(t, 10, "good/new")
		s.addItems(newHostileItems(10)...)
		s.addItems("good/new/1")
		s.addItems(newHostileItems(50)[10:]...)
		s.step(most)
		if began, ok := s.started["good/new/1"]; !ok || began > most {
			t.Errorf("started: %t, after %s", ok, began)
		}
	})
	t.Run("an untried target starts although proven targets use all workers [F107]", func(t *testing.T) {
		w := newTestShares(t, 10)
		busy := []string{}
		for i := range 12 {
			w.markProven(fmt.Sprintf("busy%d/t", i))
			busy = append(busy, newItems(fmt.Sprintf("busy%d/t", i), 2)...)
		}
		w.acquire(busy...)
		w.expect("the item", w.acquire("new/t/1"), "new/t/1")
		w.expect("another untried target waits for it", w.acquire("new2/t/1"))
		w.health["new/t"] = targets.HealthStalled
		w.runTimers()
		w.expect("the next one", w.offered, "new2/t/1")
	})
	t.Run("a proven target that stalls for less than two seconds uses its workers [F107]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.markProven("a/x")
		w.acquire(newItems("a/x", 12)...)
		w.health["a/x"] = targets.HealthStalled
		w.runTimers()
		w.expect("offers", w.offered)
		w.release("a/x/0")
		w.expect("one more, and it is still proven", w.offered, "a/x/10")
	})
	t.Run("one namespace uses at most half of the workers for runs that stall [F107]", func(t *testing.T) {
		w := newTestShares(t, 10)
		taken := 0
		for i := range 2 * maxStalled {
			place := fmt.Sprintf("evil/t%d", i)
			if len(w.acquire(place+"/1")) > 0 {
				taken++
			}
			w.health[place] = targets.HealthStalled
		}
		if want := maxStalled/2 + 3; taken != want {
			t.Errorf("%d items run, want %d", taken, want)
		}
		w.expect("another namespace", w.acquire("new/t/1"), "new/t/1")
	})
	t.Run("an unhealthy target waits for untried targets [F107]", func(t *testing.T) {
		w := newTestShares(t, 1)
		w.health["bad/t"] = targets.HealthBad
		w.markProven("bad/t")
		delete(w.health, "bad/t")
		w.acquire("first/t/1")
		w.acquire("bad/t/1", "new/t/1")
		w.release("first/t/1")
		w.expect("offers", w.offered, "new/t/1")
	})
}

func TestUntriedTargetsBesideIdleRuns(t *testing.T) {
	const most = 2 * time.Second
	idle := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("idle%d/t%d/1", i%7, i))
		}
		return out
	}
	for _, n := range []int{5, 12, 100} {
		t.Run(fmt.Sprintf("an untried target starts within 2 s beside %d unproven targets whose runs take minutes and do not stall [F107]", n), func(t *testing.T) {
			for _, wait := range []time.Duration{0, time.Second, 10 * time.Second, 5 * time.Minute} {
				s := newSimulation(t, 10, "good/new")
				s.idle = true
				s.addItems(idle(n)...)
				s.step(wait)
				arrived := s.now
				s.addItems("good/new/1")
				s.step(most)
				if began, ok := s.started["good/new/1"]; !ok || began-arrived > most {
					t.Errorf("after %s: started: %t, at %s", wait, ok, began-arrived)
				}
			}
		})
	}
	t.Run("an untried target starts within 2 s beside proven targets that use all workers and idle runs [F107]", func(t *testing.T) {
		s := newSimulation(t, 10, "good/new")
		busy := []string{}
		for i := range 12 {
			s.markProven(fmt.Sprintf("busy%d/t", i))
			busy = append(busy, newItems(fmt.Sprintf("busy%d/t", i), 2)...)
		}
		s.idle = true
		s.addItems(busy...)
		s.addItems(idle(20)...)
		s.step(5 * time.Second)
		arrived := s.now
		s.addItems("good/new/1")
		s.step(most)
		if began, ok := s.started["good/new/1"]; !ok || began-arrived > most {
			t.Errorf("started: %t, at %s", ok, began-arrived)
		}
	})
	t.Run("unproven targets of one namespace whose runs do not stall leave workers to other namespaces [F107]", func(t *testing.T) {
		s := newSimulation(t, 10)
		s.idle = true
		all := []string{}
		for i := range 2 * maxStalled {
			all = append(all, fmt.Sprintf("evil/t%d/1", i))
		}
		s.addItems(all...)
		s.step(5 * time.Minute)
		if most := maxStalled/2 + 4; len(s.began) > most {
			t.Errorf("%d items run, want at most %d", len(s.began), most)
		}
		s.expect("items without a target", s.acquire(newItems("other/", 5)...), newItems("other/", 5)...)
		s.expect("an untried target", s.acquire("new/t/1"), "new/t/1")
	})
	t.Run("only one more untried target runs per interval [F107]", func(t *testing.T) {
		s := newSimulation(t, 10)
		s.idle = true
		s.addItems(idle(100)...)
		before := len(s.began)
		s.step(slowAfterChecks * healthCheckInterval)
		if after := len(s.began); before > 6 || after > before+1 {
			t.Errorf("%d items run, then %d", before, after)
		}
	})
	t.Run("untried targets use half of the workers if there are no extra workers [F107]", func(t *testing.T) {
		s := newSimulation(t, 3)
		s.idle = true
		s.addItems(idle(9)...)
		s.step(time.Minute)
		if len(s.began) != 1 {
			t.Errorf("%d items run, want 1", len(s.began))
		}
	})
}
