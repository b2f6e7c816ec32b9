// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deployerkit/deployerkit/targets"
)

// scene simulates targets that stop responding when an item of them runs. It advances in steps of lookAgain.
type scene struct {
	*world

	now     time.Duration
	pending []string                 // items that are not running
	began   map[string]time.Duration // when each running item of a hostile target began
	started map[string]time.Duration // when each item first began
	good    map[string]bool          // the targets that respond
	idle    bool                     // whether the runs on all other targets take minutes without stalling
}

func newScene(t *testing.T, workers int, good ...string) *scene {
	s := &scene{world: newWorld(t, workers), began: map[string]time.Duration{}, started: map[string]time.Duration{}, good: map[string]bool{}}
	for _, place := range good {
		s.good[place] = true
	}
	return s
}

// requestTimeout is how long a run on a hostile target takes.
const requestTimeout = time.Minute

// arrive adds items, which request a share at once.
func (s *scene) arrive(items ...string) {
	s.pending = append(s.pending, items...)
	s.run(items...)
}

// run requests shares. Items of good targets end at once.
func (s *scene) run(items ...string) {
	for _, item := range s.take(items...) {
		_, place := split(item)
		if _, again := s.started[item]; !again {
			s.started[item] = s.now
		}
		s.pending = slices.DeleteFunc(s.pending, func(other string) bool { return other == item })
		if s.good[place.Namespace+"/"+place.Target] {
			s.give(item)
			continue
		}
		s.began[item] = s.now
	}
}

// advance simulates the given time.
func (s *scene) advance(d time.Duration) {
	for end := s.now + d; s.now < end; {
		s.now += lookAgain
		for item, began := range s.began {
			_, place := split(item)
			name := place.Namespace + "/" + place.Target
			switch ran := s.now - began; {
			case s.idle:
			case ran >= requestTimeout:
				s.health[name] = targets.HealthBad
				delete(s.began, item)
				s.give(item)
				s.arrive(item) // the retry
			case ran >= 2*time.Second:
				s.health[name] = targets.HealthBad
			default:
				s.health[name] = targets.HealthStalled
			}
		}
		s.step()
		offered := s.offered
		s.offered = nil
		s.run(offered...)
	}
}

// hostileItems returns three items for each of n hostile targets in their own namespaces. The items are ordered as if
// all targets had been created at the same time.
func hostileItems(n int) (out []string) {
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
				s := newScene(t, 10, "good/new")
				s.arrive(hostileItems(n)...)
				s.advance(wait)
				arrived := s.now
				s.arrive("good/new/1")
				s.advance(most)
				if began, ok := s.started["good/new/1"]; !ok {
					t.Errorf("after %s, it does not start within %s", wait, most)
				} else if began-arrived > most {
					t.Errorf("after %s, it starts after %s", wait, began-arrived)
				}
			}
		})
	}
	t.Run("an untried target starts within 2 s if 40 others arrive after it [F107]", func(t *testing.T) {
		s := newScene(t, 10, "good/new")
		s.arrive(hostileItems(10)...)
		s.arrive("good/new/1")
		s.arrive(hostileItems(50)[10:]...)
		s.advance(most)
		if began, ok := s.started["good/new/1"]; !ok || began > most {
			t.Errorf("started: %t, after %s", ok, began)
		}
	})
	t.Run("an untried target starts although proven targets use all workers [F107]", func(t *testing.T) {
		w := newWorld(t, 10)
		busy := []string{}
		for i := range 12 {
			w.prove(fmt.Sprintf("busy%d/t", i))
			busy = append(busy, items(fmt.Sprintf("busy%d/t", i), 2)...)
		}
		w.take(busy...)
		w.want("the item", w.take("new/t/1"), "new/t/1")
		w.want("another untried target waits for it", w.take("new2/t/1"))
		w.health["new/t"] = targets.HealthStalled
		w.step()
		w.want("the next one", w.offered, "new2/t/1")
	})
	t.Run("a proven target that stalls for less than two seconds uses its workers [F107]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.prove("a/x")
		w.take(items("a/x", 12)...)
		w.health["a/x"] = targets.HealthStalled
		w.step()
		w.want("offers", w.offered)
		w.give("a/x/0")
		w.want("one more, and it is still proven", w.offered, "a/x/10")
	})
	t.Run("one namespace uses at most half of the workers for runs that stall [F107]", func(t *testing.T) {
		w := newWorld(t, 10)
		taken := 0
		for i := range 2 * spare {
			place := fmt.Sprintf("evil/t%d", i)
			if len(w.take(place+"/1")) > 0 {
				taken++
			}
			w.health[place] = targets.HealthStalled
		}
		if want := spare/2 + 3; taken != want {
			t.Errorf("%d items run, want %d", taken, want)
		}
		w.want("another namespace", w.take("new/t/1"), "new/t/1")
	})
	t.Run("an unhealthy target waits for untried targets [F107]", func(t *testing.T) {
		w := newWorld(t, 1)
		w.health["bad/t"] = targets.HealthBad
		w.prove("bad/t")
		delete(w.health, "bad/t")
		w.take("first/t/1")
		w.take("bad/t/1", "new/t/1")
		w.give("first/t/1")
		w.want("offers", w.offered, "new/t/1")
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
				s := newScene(t, 10, "good/new")
				s.idle = true
				s.arrive(idle(n)...)
				s.advance(wait)
				arrived := s.now
				s.arrive("good/new/1")
				s.advance(most)
				if began, ok := s.started["good/new/1"]; !ok || began-arrived > most {
					t.Errorf("after %s: started: %t, at %s", wait, ok, began-arrived)
				}
			}
		})
	}
	t.Run("an untried target starts within 2 s beside proven targets that use all workers and idle runs [F107]", func(t *testing.T) {
		s := newScene(t, 10, "good/new")
		busy := []string{}
		for i := range 12 {
			s.prove(fmt.Sprintf("busy%d/t", i))
			busy = append(busy, items(fmt.Sprintf("busy%d/t", i), 2)...)
		}
		s.idle = true
		s.arrive(busy...)
		s.arrive(idle(20)...)
		s.advance(5 * time.Second)
		arrived := s.now
		s.arrive("good/new/1")
		s.advance(most)
		if began, ok := s.started["good/new/1"]; !ok || began-arrived > most {
			t.Errorf("started: %t, at %s", ok, began-arrived)
		}
	})
	t.Run("unproven targets of one namespace whose runs do not stall leave workers to other namespaces [F107]", func(t *testing.T) {
		s := newScene(t, 10)
		s.idle = true
		all := []string{}
		for i := range 2 * spare {
			all = append(all, fmt.Sprintf("evil/t%d/1", i))
		}
		s.arrive(all...)
		s.advance(5 * time.Minute)
		if most := spare/2 + 4; len(s.began) > most {
			t.Errorf("%d items run, want at most %d", len(s.began), most)
		}
		s.want("items without a target", s.take(items("other/", 5)...), items("other/", 5)...)
		s.want("an untried target", s.take("new/t/1"), "new/t/1")
	})
	t.Run("only one more untried target runs per interval [F107]", func(t *testing.T) {
		s := newScene(t, 10)
		s.idle = true
		s.arrive(idle(100)...)
		before := len(s.began)
		s.advance(slowAfter * lookAgain)
		if after := len(s.began); before > 6 || after > before+1 {
			t.Errorf("%d items run, then %d", before, after)
		}
	})
	t.Run("untried targets use half of the workers if there are no extra workers [F107]", func(t *testing.T) {
		s := newScene(t, 3)
		s.idle = true
		s.arrive(idle(9)...)
		s.advance(time.Minute)
		if len(s.began) != 1 {
			t.Errorf("%d items run, want 1", len(s.began))
		}
	})
}
