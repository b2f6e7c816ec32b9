// SPDX-License-Identifier: Apache-2.0

package shares

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/targets"
)

// world contains a Shares, the health of the targets, and the timers and offers that the Shares requested. Items are
// named "namespace/target/number".
type world struct {
	*Shares

	t       *testing.T
	timers  []func()
	health  map[string]targets.Health // by "namespace/target"; all other targets are healthy
	offered []string
	waits   int
}

func newWorld(t *testing.T, workers int) *world {
	w := &world{t: t, health: map[string]targets.Health{}}
	after := func(_ time.Duration, f func()) { w.timers = append(w.timers, f) }
	w.Shares = New(Options{
		Workers: workers, TargetShare: 0.5, After: after, Offer: func(item types.NamespacedName) { w.offered = append(w.offered, item.Name) },
		Waits: func(change int) { w.waits += change },
	})
	w.Judge(func(target types.NamespacedName) targets.Health {
		if health, known := w.health[target.String()]; known {
			return health
		}
		return targets.HealthGood
	})
	return w
}

func split(item string) (types.NamespacedName, Place) {
	parts := strings.Split(item, "/")
	return types.NamespacedName{Namespace: parts[0], Name: item}, Place{Namespace: parts[0], Target: parts[1]}
}

func (w *world) take(items ...string) (taken []string) {
	for _, item := range items {
		key, place := split(item)
		if w.Take(key, Claim{Place: place}) {
			taken = append(taken, item)
		}
	}
	return taken
}

// step runs the pending timers, as if the interval `lookAgain` had passed.
func (w *world) step() {
	timers := w.timers
	w.timers = nil
	for _, f := range timers {
		f()
	}
}

func (w *world) give(items ...string) {
	for _, item := range items {
		key, _ := split(item)
		w.Return(key)
	}
}

// prove makes targets proven: one item of each target takes a share and returns it.
func (w *world) prove(places ...string) {
	for _, place := range places {
		w.give(w.take(place + "/proof")...)
	}
}

func items(place string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s/%d", place, i))
	}
	return out
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: -want, +got:\n%s", what, diff)
	}
}

func TestShares(t *testing.T) {
	for name, tc := range map[string]struct {
		workers int
		health  map[string]targets.Health
		proven  []string
		items   []string
		want    map[string]int // the expected number of shares by place
	}{
		"one target":                             {10, nil, []string{"a/x"}, items("a/x", 20), map[string]int{"a/x": 10}},
		"two targets":                            {10, nil, []string{"a/x", "b/y"}, append(items("a/x", 20), items("b/y", 20)...), map[string]int{"a/x": 10, "b/y": 1}},
		"one namespace":                          {10, nil, []string{"a/x", "a/y"}, append(items("a/x", 20), items("a/y", 20)...), map[string]int{"a/x": 10, "a/y": 1}},
		"the extra worker is for another target": {10, nil, []string{"a/x", "a/y", "b/z"}, slices.Concat(items("a/x", 20), items("a/y", 20), items("b/z", 20)), map[string]int{"a/x": 10, "a/y": 1, "b/z": 1}},
		"no target uses more than its share":     {10, nil, []string{"a/x", "a/y", "a/z", "b/z"}, slices.Concat(items("a/x", 5), items("a/y", 20), items("a/z", 20), items("b/z", 20)), map[string]int{"a/x": 5, "a/y": 5, "b/z": 1}},
		"an unhealthy target":                    {10, map[string]targets.Health{"a/x": targets.HealthBad}, nil, items("a/x", 20), map[string]int{"a/x": 1}},
		"unhealthy targets": {
			10,
			map[string]targets.Health{"a/1": targets.HealthBad, "b/1": targets.HealthBad, "c/1": targets.HealthBad, "d/1": targets.HealthBad, "e/1": targets.HealthBad, "f/1": targets.HealthBad},
			nil, slices.Concat(items("a/1", 9), items("b/1", 9), items("c/1", 9), items("d/1", 9), items("e/1", 9), items("f/1", 9)),
			map[string]int{"a/1": 1, "b/1": 1, "c/1": 1},
		},
		"a target of unknown health":         {10, map[string]targets.Health{"a/x": targets.HealthUnknown}, nil, items("a/x", 20), map[string]int{"a/x": 1}},
		"untried targets":                    {10, nil, nil, slices.Concat(items("a/1", 4), items("a/2", 4), items("a/3", 4), items("a/4", 4), items("b/1", 4), items("b/2", 4), items("c/1", 4)), map[string]int{"a/1": 1, "a/2": 1, "a/3": 1, "b/1": 1, "b/2": 1}},
		"untried targets and a proven one":   {10, nil, []string{"p/p"}, slices.Concat(items("a/x", 4), items("b/y", 4), items("c/z", 4), items("p/p", 9)), map[string]int{"a/x": 1, "b/y": 1, "c/z": 1, "p/p": 5}},
		"an untried target and a proven one": {10, nil, []string{"p/p"}, slices.Concat(items("a/x", 4), items("p/p", 20)), map[string]int{"a/x": 1, "p/p": 5}},
		"items without a target":             {10, nil, nil, items("a/", 20), map[string]int{"a/": 10}},
		"one worker":                         {1, nil, nil, items("a/x", 2), map[string]int{"a/x": 1}},
		"two workers":                        {2, nil, nil, items("a/", 3), map[string]int{"a/": 2}},
		"three workers":                      {3, nil, nil, append(items("a/", 4), "b/"), map[string]int{"a/": 3}},
		"four workers":                       {4, nil, nil, append(items("a/", 5), "b/", "c/"), map[string]int{"a/": 4, "b": 1}},
	} {
		t.Run(name+" [F4]", func(t *testing.T) {
			w := newWorld(t, tc.workers)
			w.prove(tc.proven...)
			maps.Copy(w.health, tc.health)
			got := map[string]int{}
			for _, item := range w.take(tc.items...) {
				got[item[:strings.LastIndex(item, "/")]]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shares: -want, +got:\n%s", diff)
			}
			if waiting := len(tc.items) - len(w.take(tc.items...)); waiting != w.Waiting() {
				t.Errorf("%d wait, want %d", w.Waiting(), waiting)
			}
		})
	}
}

func TestQueueOrder(t *testing.T) {
	t.Run("items are ordered by namespace, target and time [F4]", func(t *testing.T) {
		w := newWorld(t, 3)
		w.prove("a/x", "a/y", "b/x")
		w.want("first", w.take("a/x/1", "a/y/1", "b/x/1", "a/x/2", "a/y/2", "b/x/2", "c/x/1"), "a/x/1", "a/y/1", "b/x/1")
		w.give("a/x/1", "b/x/1", "a/y/1")
		w.want("offers", w.offered, "c/x/1", "b/x/2", "a/x/2")
		w.want("an offer is taken", w.take("b/x/2"), "b/x/2")
	})
	t.Run("a target keeps its share of free workers while others wait [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.prove("a/x", "a/y", "b/z")
		w.want("alone", w.take(items("a/x", 20)...), items("a/x", 10)...)
		w.want("another target and another namespace", w.take("a/y/1", "b/z/1", "b/z/2", "a/y/2"), "a/y/1", "b/z/1")
		w.give(items("a/x", 5)...)
		w.want("others wait", w.offered, "b/z/2", "a/y/2", "a/x/10")
		w.give("a/y/1", "a/y/2", "b/z/1", "b/z/2")
		w.want("alone again", w.offered[3:], "a/x/11", "a/x/12", "a/x/13", "a/x/14")
	})
	t.Run("a single target uses all of a few workers, and others use extra workers [F4]", func(t *testing.T) {
		w := newWorld(t, 4)
		w.prove("a/x", "b/z")
		w.want("alone", w.take(items("a/x", 9)...), items("a/x", 4)...)
		w.want("another namespace", w.take("b/z/1", "b/z/2", "c/z/1"), "b/z/1", "c/z/1")
		w.give("b/z/1", "c/z/1")
		w.want("one extra worker is for a namespace without one", w.offered, "b/z/2")
	})
	t.Run("items of a target are ordered by priority [F4]", func(t *testing.T) {
		w := newWorld(t, 1)
		w.take("a/x/1", "a/x/2", "a/x/3")
		key, place := split("a/x/3")
		if w.Take(key, Claim{Place: place, Priority: 100}) {
			t.Fatal("taken although there is one worker")
		}
		w.give("a/x/1")
		w.want("urgent", w.offered, "a/x/3")
	})
	t.Run("new items do not overtake items that wait [F4]", func(t *testing.T) {
		w := newWorld(t, 1)
		w.take("a/x/1", "b/x/1")
		w.give("a/x/1")
		w.want("newcomer", w.take("c/x/1", "a/x/1"))
		w.want("offers", w.offered, "b/x/1")
		w.want("taken", w.take("b/x/1"), "b/x/1")
	})
	t.Run("an item that stops waiting lets the next item run [F4]", func(t *testing.T) {
		w := newWorld(t, 1)
		w.prove("a/x", "b/x", "c/x")
		w.take("a/x/1", "b/x/1", "c/x/1")
		w.give("a/x/1") // the share is offered to b/x/1
		w.give("b/x/1")
		w.want("offers", w.offered, "b/x/1", "c/x/1")
	})
	t.Run("an item whose target changed while it waited uses no share of the old target [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.health["a/bad"] = targets.HealthBad
		w.prove("a/x")
		w.take("a/x/1", "a/bad/1", "a/bad/2")
		key, _ := split("a/bad/2")
		if !w.Take(key, Claim{Place: Place{Namespace: "a", Target: "x"}}) || w.Waiting() != 0 {
			t.Errorf("not taken, %d wait", w.Waiting())
		}
	})
}

// TestHealthChanges checks that changes of a target's health take effect while items wait and run.
func TestHealthChanges(t *testing.T) {
	t.Run("a target that recovers gets its shares without an event [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.prove("a/x")
		w.health["a/x"] = targets.HealthBad
		w.want("one", w.take(items("a/x", 3)...), "a/x/0")
		w.step()
		w.want("still unhealthy", w.offered)
		delete(w.health, "a/x")
		w.step()
		w.want("recovered", w.offered, "a/x/1", "a/x/2")
		if len(w.timers) > 0 {
			t.Error("no item waits, but a timer still runs")
		}
	})
	t.Run("items of a target that becomes unhealthy no longer count as workers [F107]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.prove("a/x")
		w.take(items("a/x", 5)...)
		w.health["a/x"] = targets.HealthBad
		w.want("unproven ones", w.take("b/x/1", "c/x/1", "d/x/1", "e/x/1", "f/x/1"), "b/x/1", "c/x/1", "d/x/1", "e/x/1", "f/x/1")
		w.want("one more unproven one", w.take("g/x/1"))
		w.want("another item of the unhealthy one", w.take("a/x/5"))
	})
	t.Run("a target that became unhealthy must succeed again [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		w.prove("a/x")
		w.take("a/x/1")
		w.health["a/x"] = targets.HealthBad
		w.give("a/x/1")
		delete(w.health, "a/x")
		w.want("one", w.take("a/x/2", "a/x/3"), "a/x/2")
	})
	t.Run("the health checks stop with the process", func(t *testing.T) {
		w := newWorld(t, 1)
		w.take("a/x/1", "a/x/2")
		w.Close()
		w.step()
		if len(w.timers) > 0 {
			t.Error("a timer still runs")
		}
	})
}

// TestNewTargets checks that unhealthy targets do not use the workers that are reserved for new targets.
func TestNewTargets(t *testing.T) {
	bad := func(w *world, spaces ...string) {
		for _, space := range spaces {
			w.health[space+"/x"] = targets.HealthBad
		}
	}
	t.Run("a new target runs beside unhealthy targets [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		bad(w, "a", "b", "c", "d")
		w.want("unhealthy", w.take("a/x/1", "b/x/1", "c/x/1", "d/x/1"), "a/x/1", "b/x/1", "c/x/1")
		w.want("new", w.take("e/x/1", "f/x/1", "g/x/1", "h/x/1", "i/x/1", "j/x/1"), "e/x/1", "f/x/1", "g/x/1", "h/x/1", "i/x/1")
		w.give("e/x/1")
		w.want("one more", w.offered, "j/x/1")
	})
	t.Run("a new target runs beside targets whose last item ended unhealthy, until an item succeeds [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		bad(w, "a", "b", "c", "d")
		w.take("a/x/1", "b/x/1", "c/x/1")
		w.give("a/x/1", "b/x/1", "c/x/1")
		w.take("d/x/1")
		w.give("d/x/1")
		clear(w.health)
		w.want("they answer again", w.take("a/x/1", "b/x/1", "c/x/1", "d/x/1"), "a/x/1", "b/x/1", "c/x/1")
		w.give("a/x/1")
		w.want("one has ended well", w.offered, "d/x/1")
	})
	t.Run("a target that no item has used is new [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		bad(w, "a", "b", "c")
		w.health["new/x"] = targets.HealthUnknown
		w.give(w.take("new/x/1")...)
		w.take("a/x/1", "b/x/1", "c/x/1")
		w.want("new", w.take("new/x/2"), "new/x/2")
	})
}

// TestStalledTargetsOfOtherNamespaces checks that an item of a healthy target runs immediately, even if this item is
// added last and the items of another namespace never finish.
func TestStalledTargetsOfOtherNamespaces(t *testing.T) {
	t.Run("a new target runs beside a namespace of targets that never finish [F4]", func(t *testing.T) {
		w := newWorld(t, 10)
		for i := range 20 {
			w.take(items(fmt.Sprintf("evil/t%d", i), 5)...)
		}
		w.want("the item", w.take("new/t/1"), "new/t/1")
	})
	for name, hostile := range map[string]func(w *world){
		"100 items of targets that never finish [F4]": func(w *world) {
			for i := range 20 {
				w.take(items(fmt.Sprintf("evil%d/t", i), 5)...)
			}
		},
		"10000 items of one healthy target [F4]": func(w *world) {
			w.prove("busy/t")
			w.take(items("busy/t", 10_000)...)
		},
		"items of many healthy targets of one namespace [F4]": func(w *world) {
			for i := range 20 {
				w.prove(fmt.Sprintf("busy/t%d", i))
			}
			for i := range 20 {
				w.take(items(fmt.Sprintf("busy/t%d", i), 50)...)
			}
		},
		"targets that finish at first and later never finish [F4]": func(w *world) {
			w.prove("evil/t")
			w.take(items("evil/t", 100)...)
			w.health["evil/t"] = targets.HealthBad
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			w.prove("good/t")
			hostile(w)
			w.want("the item", w.take("good/t/1"), "good/t/1")
			w.give("good/t/1")
			w.want("the next item", w.take("good/t/2"), "good/t/2")
		})
	}
}

func BenchmarkTake(b *testing.B) {
	s := New(Options{Workers: 10, TargetShare: 0.5, After: func(time.Duration, func()) {}, Offer: func(types.NamespacedName) {}})
	key, place := split("a/x/1")
	b.ReportAllocs()
	for b.Loop() {
		s.Take(key, Claim{Place: place})
		s.Return(key)
	}
}

// TestWaits checks that each change of the number of waiting items is reported.
func TestWaits(t *testing.T) {
	t.Run("the sum of all changes is the number of items that wait [F4]", func(t *testing.T) {
		w := newWorld(t, 2)
		w.health["a/t"] = targets.HealthBad
		w.take("a/t/1", "a/t/2", "a/t/3")
		if w.waits != 2 || w.Waiting() != 2 {
			t.Errorf("%d items wait, but %d were reported", w.Waiting(), w.waits)
		}
		item, _ := split("a/t/1")
		w.Return(item)
		if w.waits != 1 || w.Waiting() != 1 {
			t.Errorf("%d items wait, but %d were reported", w.Waiting(), w.waits)
		}
		w.Close()
		item, _ = split("a/t/3")
		w.Return(item)
		if w.waits != 0 {
			t.Errorf("after the end, %d items wait", w.waits)
		}
	})
}
