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

// testShares contains a Shares, the health of the targets, and the timers and offers that the Shares requested. Items
// are named "namespace/target/number".
type testShares struct {
	*Shares

	t       *testing.T
	timers  []func()
	health  map[string]targets.Health // by "namespace/target"; all other targets are healthy
	offered []string
	waits   int
}

func newTestShares(t *testing.T, workers int) *testShares {
	w := &testShares{t: t, health: map[string]targets.Health{}}
	after := func(_ time.Duration, f func()) { w.timers = append(w.timers, f) }
	w.Shares = New(Options{
		Workers: workers, TargetShare: 0.5, After: after, Offer: func(item types.NamespacedName) { w.offered = append(w.offered, item.Name) },
		OnWaitingChange: func(change int) { w.waits += change },
	})
	w.SetHealthFunc(func(target types.NamespacedName) targets.Health {
		if health, known := w.health[target.String()]; known {
			return health
		}
		return targets.HealthGood
	})
	return w
}

func parseItem(item string) (types.NamespacedName, Place) {
	parts := strings.Split(item, "/")
	return types.NamespacedName{Namespace: parts[0], Name: item}, Place{Namespace: parts[0], Target: parts[1]}
}

func (w *testShares) acquire(items ...string) (taken []string) {
	for _, item := range items {
		key, place := parseItem(item)
		if w.Acquire(key, Claim{Place: place}) {
			taken = append(taken, item)
		}
	}
	return taken
}

// runTimers runs the pending timers, as if the interval `healthCheckInterval` had passed.
func (w *testShares) runTimers() {
	timers := w.timers
	w.timers = nil
	for _, f := range timers {
		f()
	}
}

func (w *testShares) release(items ...string) {
	for _, item := range items {
		key, _ := parseItem(item)
		w.Release(key)
	}
}

// markProven makes targets proven: one item of each target takes a share and returns it.
func (w *testShares) markProven(places ...string) {
	for _, place := range places {
		w.release(w.acquire(place + "/proof")...)
	}
}

func newItems(place string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s/%d", place, i))
	}
	return out
}

func (w *testShares) expect(what string, got []string, expect ...string) {
	w.t.Helper()
	if diff := cmp.Diff(expect, got); diff != "" {
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
		"one target":                             {10, nil, []string{"a/x"}, newItems("a/x", 20), map[string]int{"a/x": 10}},
		"two targets":                            {10, nil, []string{"a/x", "b/y"}, append(newItems("a/x", 20), newItems("b/y", 20)...), map[string]int{"a/x": 10, "b/y": 1}},
		"one namespace":                          {10, nil, []string{"a/x", "a/y"}, append(newItems("a/x", 20), newItems("a/y", 20)...), map[string]int{"a/x": 10, "a/y": 1}},
		"the extra worker is for another target": {10, nil, []string{"a/x", "a/y", "b/z"}, slices.Concat(newItems("a/x", 20), newItems("a/y", 20), newItems("b/z", 20)), map[string]int{"a/x": 10, "a/y": 1, "b/z": 1}},
		"no target uses more than its share":     {10, nil, []string{"a/x", "a/y", "a/z", "b/z"}, slices.Concat(newItems("a/x", 5), newItems("a/y", 20), newItems("a/z", 20), newItems("b/z", 20)), map[string]int{"a/x": 5, "a/y": 5, "b/z": 1}},
		"an unhealthy target":                    {10, map[string]targets.Health{"a/x": targets.HealthBad}, nil, newItems("a/x", 20), map[string]int{"a/x": 1}},
		"unhealthy targets": {
			10,
			map[string]targets.Health{"a/1": targets.HealthBad, "b/1": targets.HealthBad, "c/1": targets.HealthBad, "d/1": targets.HealthBad, "e/1": targets.HealthBad, "f/1": targets.HealthBad},
			nil, slices.Concat(newItems("a/1", 9), newItems("b/1", 9), newItems("c/1", 9), newItems("d/1", 9), newItems("e/1", 9), newItems("f/1", 9)),
			map[string]int{"a/1": 1, "b/1": 1, "c/1": 1},
		},
		"a target of unknown health":         {10, map[string]targets.Health{"a/x": targets.HealthUnknown}, nil, newItems("a/x", 20), map[string]int{"a/x": 1}},
		"untried targets":                    {10, nil, nil, slices.Concat(newItems("a/1", 4), newItems("a/2", 4), newItems("a/3", 4), newItems("a/4", 4), newItems("b/1", 4), newItems("b/2", 4), newItems("c/1", 4)), map[string]int{"a/1": 1, "a/2": 1, "a/3": 1, "b/1": 1, "b/2": 1}},
		"untried targets and a proven one":   {10, nil, []string{"p/p"}, slices.Concat(newItems("a/x", 4), newItems("b/y", 4), newItems("c/z", 4), newItems("p/p", 9)), map[string]int{"a/x": 1, "b/y": 1, "c/z": 1, "p/p": 5}},
		"an untried target and a proven one": {10, nil, []string{"p/p"}, slices.Concat(newItems("a/x", 4), newItems("p/p", 20)), map[string]int{"a/x": 1, "p/p": 5}},
		"items without a target":             {10, nil, nil, newItems("a/", 20), map[string]int{"a/": 10}},
		"one worker":                         {1, nil, nil, newItems("a/x", 2), map[string]int{"a/x": 1}},
		"two workers":                        {2, nil, nil, newItems("a/", 3), map[string]int{"a/": 2}},
		"three workers":                      {3, nil, nil, append(newItems("a/", 4), "b/"), map[string]int{"a/": 3}},
		"four workers":                       {4, nil, nil, append(newItems("a/", 5), "b/", "c/"), map[string]int{"a/": 4, "b": 1}},
	} {
		t.Run(name+" [F4]", func(t *testing.T) {
			w := newTestShares(t, tc.workers)
			w.markProven(tc.proven...)
			maps.Copy(w.health, tc.health)
			got := map[string]int{}
			for _, item := range w.acquire(tc.items...) {
				got[item[:strings.LastIndex(item, "/")]]++
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shares: -want, +got:\n%s", diff)
			}
			if waiting := len(tc.items) - len(w.acquire(tc.items...)); waiting != w.NumWaiting() {
				t.Errorf("%d wait, want %d", w.NumWaiting(), waiting)
			}
		})
	}
}

func TestQueueOrder(t *testing.T) {
	t.Run("items are ordered by namespace, target and time [F4]", func(t *testing.T) {
		w := newTestShares(t, 3)
		w.markProven("a/x", "a/y", "b/x")
		w.expect("first", w.acquire("a/x/1", "a/y/1", "b/x/1", "a/x/2", "a/y/2", "b/x/2", "c/x/1"), "a/x/1", "a/y/1", "b/x/1")
		w.release("a/x/1", "b/x/1", "a/y/1")
		w.expect("offers", w.offered, "c/x/1", "b/x/2", "a/x/2")
		w.expect("an offer is taken", w.acquire("b/x/2"), "b/x/2")
	})
	t.Run("a target keeps its share of free workers while others wait [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.markProven("a/x", "a/y", "b/z")
		w.expect("alone", w.acquire(newItems("a/x", 20)...), newItems("a/x", 10)...)
		w.expect("another target and another namespace", w.acquire("a/y/1", "b/z/1", "b/z/2", "a/y/2"), "a/y/1", "b/z/1")
		w.release(newItems("a/x", 5)...)
		w.expect("others wait", w.offered, "b/z/2", "a/y/2", "a/x/10")
		w.release("a/y/1", "a/y/2", "b/z/1", "b/z/2")
		w.expect("alone again", w.offered[3:], "a/x/11", "a/x/12", "a/x/13", "a/x/14")
	})
	t.Run("a single target uses all of a few workers, and others use extra workers [F4]", func(t *testing.T) {
		w := newTestShares(t, 4)
		w.markProven("a/x", "b/z")
		w.expect("alone", w.acquire(newItems("a/x", 9)...), newItems("a/x", 4)...)
		w.expect("another namespace", w.acquire("b/z/1", "b/z/2", "c/z/1"), "b/z/1", "c/z/1")
		w.release("b/z/1", "c/z/1")
		w.expect("one extra worker is for a namespace without one", w.offered, "b/z/2")
	})
	t.Run("items of a target are ordered by priority [F4]", func(t *testing.T) {
		w := newTestShares(t, 1)
		w.acquire("a/x/1", "a/x/2", "a/x/3")
		key, place := parseItem("a/x/3")
		if w.Acquire(key, Claim{Place: place, Priority: 100}) {
			t.Fatal("taken although there is one worker")
		}
		w.release("a/x/1")
		w.expect("urgent", w.offered, "a/x/3")
	})
	t.Run("new items do not overtake items that wait [F4]", func(t *testing.T) {
		w := newTestShares(t, 1)
		w.acquire("a/x/1", "b/x/1")
		w.release("a/x/1")
		w.expect("newcomer", w.acquire("c/x/1", "a/x/1"))
		w.expect("offers", w.offered, "b/x/1")
		w.expect("taken", w.acquire("b/x/1"), "b/x/1")
	})
	t.Run("an item that stops waiting lets the next item run [F4]", func(t *testing.T) {
		w := newTestShares(t, 1)
		w.markProven("a/x", "b/x", "c/x")
		w.acquire("a/x/1", "b/x/1", "c/x/1")
		w.release("a/x/1") // the share is offered to b/x/1
		w.release("b/x/1")
		w.expect("offers", w.offered, "b/x/1", "c/x/1")
	})
	t.Run("an item whose target changed while it waited uses no share of the old target [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.health["a/bad"] = targets.HealthBad
		w.markProven("a/x")
		w.acquire("a/x/1", "a/bad/1", "a/bad/2")
		key, _ := parseItem("a/bad/2")
		if !w.Acquire(key, Claim{Place: Place{Namespace: "a", Target: "x"}}) || w.NumWaiting() != 0 {
			t.Errorf("not taken, %d wait", w.NumWaiting())
		}
	})
}

// TestHealthChanges checks that changes of a target's health take effect while items wait and run.
func TestHealthChanges(t *testing.T) {
	t.Run("a target that recovers gets its shares without an event [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.markProven("a/x")
		w.health["a/x"] = targets.HealthBad
		w.expect("one", w.acquire(newItems("a/x", 3)...), "a/x/0")
		w.runTimers()
		w.expect("still unhealthy", w.offered)
		delete(w.health, "a/x")
		w.runTimers()
		w.expect("recovered", w.offered, "a/x/1", "a/x/2")
		if len(w.timers) > 0 {
			t.Error("no item waits, but a timer still runs")
		}
	})
	t.Run("items of a target that becomes unhealthy no longer count as workers [F107]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.markProven("a/x")
		w.acquire(newItems("a/x", 5)...)
		w.health["a/x"] = targets.HealthBad
		w.expect("unproven ones", w.acquire("b/x/1", "c/x/1", "d/x/1", "e/x/1", "f/x/1"), "b/x/1", "c/x/1", "d/x/1", "e/x/1", "f/x/1")
		w.expect("one more unproven one", w.acquire("g/x/1"))
		w.expect("another item of the unhealthy one", w.acquire("a/x/5"))
	})
	t.Run("a target that became unhealthy must succeed again [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		w.markProven("a/x")
		w.acquire("a/x/1")
		w.health["a/x"] = targets.HealthBad
		w.release("a/x/1")
		delete(w.health, "a/x")
		w.expect("one", w.acquire("a/x/2", "a/x/3"), "a/x/2")
	})
	t.Run("the health checks stop with the process", func(t *testing.T) {
		w := newTestShares(t, 1)
		w.acquire("a/x/1", "a/x/2")
		w.Close()
		w.runTimers()
		if len(w.timers) > 0 {
			t.Error("a timer still runs")
		}
	})
}

// TestNewTargets checks that unhealthy targets do not use the workers that are reserved for new targets.
func TestNewTargets(t *testing.T) {
	bad := func(w *testShares, spaces ...string) {
		for _, space := range spaces {
			w.health[space+"/x"] = targets.HealthBad
		}
	}
	t.Run("a new target runs beside unhealthy targets [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		bad(w, "a", "b", "c", "d")
		w.expect("unhealthy", w.acquire("a/x/1", "b/x/1", "c/x/1", "d/x/1"), "a/x/1", "b/x/1", "c/x/1")
		w.expect("new", w.acquire("e/x/1", "f/x/1", "g/x/1", "h/x/1", "i/x/1", "j/x/1"), "e/x/1", "f/x/1", "g/x/1", "h/x/1", "i/x/1")
		w.release("e/x/1")
		w.expect("one more", w.offered, "j/x/1")
	})
	t.Run("a new target runs beside targets whose last item ended unhealthy, until an item succeeds [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		bad(w, "a", "b", "c", "d")
		w.acquire("a/x/1", "b/x/1", "c/x/1")
		w.release("a/x/1", "b/x/1", "c/x/1")
		w.acquire("d/x/1")
		w.release("d/x/1")
		clear(w.health)
		w.expect("they answer again", w.acquire("a/x/1", "b/x/1", "c/x/1", "d/x/1"), "a/x/1", "b/x/1", "c/x/1")
		w.release("a/x/1")
		w.expect("one has ended well", w.offered, "d/x/1")
	})
	t.Run("a target that no item has used is new [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		bad(w, "a", "b", "c")
		w.health["new/x"] = targets.HealthUnknown
		w.release(w.acquire("new/x/1")...)
		w.acquire("a/x/1", "b/x/1", "c/x/1")
		w.expect("new", w.acquire("new/x/2"), "new/x/2")
	})
}

// TestStalledTargetsOfOtherNamespaces checks that an item of a healthy target runs immediately, even if this item is
// added last and the items of another namespace never finish.
func TestStalledTargetsOfOtherNamespaces(t *testing.T) {
	t.Run("a new target runs beside a namespace of targets that never finish [F4]", func(t *testing.T) {
		w := newTestShares(t, 10)
		for i := range 20 {
			w.acquire(newItems(fmt.Sprintf("evil/t%d", i), 5)...)
		}
		w.expect("the item", w.acquire("new/t/1"), "new/t/1")
	})
	for name, hostile := range map[string]func(w *testShares){
		"100 items of targets that never finish [F4]": func(w *testShares) {
			for i := range 20 {
				w.acquire(newItems(fmt.Sprintf("evil%d/t", i), 5)...)
			}
		},
		"10000 items of one healthy target [F4]": func(w *testShares) {
			w.markProven("busy/t")
			w.acquire(newItems("busy/t", 10_000)...)
		},
		"items of many healthy targets of one namespace [F4]": func(w *testShares) {
			for i := range 20 {
				w.markProven(fmt.Sprintf("busy/t%d", i))
			}
			for i := range 20 {
				w.acquire(newItems(fmt.Sprintf("busy/t%d", i), 50)...)
			}
		},
		"targets that finish at first and later never finish [F4]": func(w *testShares) {
			w.markProven("evil/t")
			w.acquire(newItems("evil/t", 100)...)
			w.health["evil/t"] = targets.HealthBad
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestShares(t, 10)
			w.markProven("good/t")
			hostile(w)
			w.expect("the item", w.acquire("good/t/1"), "good/t/1")
			w.release("good/t/1")
			w.expect("the next item", w.acquire("good/t/2"), "good/t/2")
		})
	}
}

func BenchmarkAcquire(b *testing.B) {
	s := New(Options{Workers: 10, TargetShare: 0.5, After: func(time.Duration, func()) {}, Offer: func(types.NamespacedName) {}})
	key, place := parseItem("a/x/1")
	b.ReportAllocs()
	for b.Loop() {
		s.Acquire(key, Claim{Place: place})
		s.Release(key)
	}
}

// TestOnWaitingChange checks that each change of the number of waiting items is reported.
func TestOnWaitingChange(t *testing.T) {
	t.Run("the sum of all changes is the number of items that wait [F4]", func(t *testing.T) {
		w := newTestShares(t, 2)
		w.health["a/t"] = targets.HealthBad
		w.acquire("a/t/1", "a/t/2", "a/t/3")
		if w.waits != 2 || w.NumWaiting() != 2 {
			t.Errorf("%d items wait, but %d were reported", w.NumWaiting(), w.waits)
		}
		item, _ := parseItem("a/t/1")
		w.Release(item)
		if w.waits != 1 || w.NumWaiting() != 1 {
			t.Errorf("%d items wait, but %d were reported", w.NumWaiting(), w.waits)
		}
		w.Close()
		item, _ = parseItem("a/t/3")
		w.Release(item)
		if w.waits != 0 {
			t.Errorf("after the end, %d items wait", w.waits)
		}
	})
}
