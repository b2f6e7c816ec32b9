// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// simulatedVisitor is a visitor with a fake clock. A visit takes some time, and the node becomes ready some time after
// the visit.
type simulatedVisitor struct {
	graph        *Graph
	visits, lags []time.Duration // by node: the duration of the visit, and the time from then until the node is ready

	mu    sync.Mutex
	began []time.Time // by node: the start of the first visit, or zero
	under *walk
	news  chan struct{} // receives a value when a node has become ready
}

func newSimulatedVisitor(g *Graph) *simulatedVisitor {
	n := len(g.nodes)
	return &simulatedVisitor{graph: g, visits: make([]time.Duration, n), lags: make([]time.Duration, n), began: make([]time.Time, n), news: make(chan struct{}, 4*n)}
}

func (c *simulatedVisitor) visit(_ context.Context, place int) (Readiness, error) {
	c.mu.Lock()
	first := c.began[place].IsZero()
	if first {
		c.began[place] = time.Now()
	}
	c.mu.Unlock()
	if first {
		<-time.After(c.visits[place])
		time.AfterFunc(time.Until(c.getReadyTime(place)), func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.under.requestRecheck(place)
			c.news <- struct{}{}
		})
	}
	return ReadyIf(!time.Now().Before(c.getReadyTime(place)), "not yet"), nil
}

func (c *simulatedVisitor) recheck(ctx context.Context, place int) (Readiness, error) {
	return c.visit(ctx, place)
}

// getReadyTime returns the time at which a visited node becomes ready.
func (c *simulatedVisitor) getReadyTime(place int) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began[place].Add(c.visits[place] + c.lags[place])
}

// runWalk walks the graph again each time a node becomes ready, until all nodes are ready. It returns how long that
// took.
func (c *simulatedVisitor) runWalk(ctx context.Context, parallel int) time.Duration {
	start := time.Now()
	for {
		under := c.graph.newWalk(c)
		c.mu.Lock()
		c.under = under
		c.mu.Unlock()
		if under.run(ctx, parallel).isReady() {
			return time.Since(start)
		}
		<-c.news
	}
}

// sumCriticalPath returns the duration of the slowest path through the graph. This is the shortest possible time for
// the whole graph, because each node is visited after the nodes that it requires.
func (c *simulatedVisitor) sumCriticalPath() (longest time.Duration) {
	end := make([]time.Duration, len(c.graph.nodes))
	for _, place := range c.graph.order {
		for _, required := range c.graph.nodes[place].requires {
			end[place] = max(end[place], end[required])
		}
		end[place] += c.visits[place] + c.lags[place]
		longest = max(longest, end[place])
	}
	return longest
}

func TestNodesDoNotWaitForUnrelatedNodes(t *testing.T) {
	t.Run("a node starts as soon as its requirements are ready [F40]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newSimulatedVisitor(buildGraph(t, "slow", "a", "b: a", "c: b"))
			c.visits[0], c.lags[1], c.lags[2] = 3*time.Second, 700*time.Millisecond, 300*time.Millisecond
			start := time.Now()
			c.runWalk(t.Context(), 2)
			if began := c.began[2].Sub(start).Round(time.Millisecond); began != 700*time.Millisecond {
				t.Errorf("b began after %s, want 700ms", began)
			}
			if began := c.began[3].Sub(start).Round(time.Millisecond); began != time.Second {
				t.Errorf("c began after %s, want 1s", began)
			}
		})
	})
	t.Run("random graphs are ready within 1.1 times their critical path [F40]", func(t *testing.T) {
		r := rand.New(rand.NewPCG(19, 40)) //nolint:gosec // not for secrets
		for i := range 300 {
			synctest.Test(t, func(t *testing.T) {
				c := newSimulatedVisitor(randomGraph(t, r, 40))
				for place := range c.lags {
					c.lags[place] = time.Duration(r.IntN(10_000)) * time.Millisecond
					c.visits[place] = time.Duration(r.IntN(20)) * time.Millisecond
				}
				if took, critical := c.runWalk(t.Context(), defaultParallel), c.sumCriticalPath(); took > critical+critical/10 {
					t.Errorf("graph %d took %s, its critical path takes %s", i, took, critical)
				}
			})
		}
	})
	t.Run("a waiting node does not use a worker [F40]", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lines := []string{"last"}
			for i := range 100 {
				lines = append(lines, fmt.Sprintf("n%d", i))
			}
			c := newSimulatedVisitor(buildGraph(t, lines...))
			for place := range c.lags {
				c.lags[place] = time.Minute
			}
			if took := c.runWalk(t.Context(), 1); took != time.Minute {
				t.Errorf("took %s, want a minute", took)
			}
		})
	})
}

func TestChainStoresInventoryRarely(t *testing.T) {
	t.Run("a chain of 200 nodes needs at most a fifth of the writes and bytes that one write per node needs [F40]", func(t *testing.T) {
		const n = 200
		b := NewBuilder()
		previous := []string{}
		for i := range n {
			requires := previous
			b.Add(fmt.Sprintf("n%d", i), Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
				data := map[string]string{}
				for _, name := range requires {
					before, err := Name(ctx, name)
					if err != nil {
						return nil, err
					}
					data["before"] = before
				}
				return newConfigMap("", data), nil
			}), requires...)
			previous = []string{fmt.Sprintf("n%d", i)}
		}
		c := newFakeSession()
		if w := visitItem(t, mustBuild(t, b), newItem("i"), c); !w.isReady() {
			t.Fatal(w.err())
		}
		waves, stored := 0, 0
		for _, name := range c.stored {
			stored += len(name)
			waves += stored
		}
		if len(c.claims) > n/5 || c.bytes > waves/5 || len(c.stored) != n {
			t.Errorf("stored %d times, %d bytes of %d, %d names", len(c.claims), c.bytes, waves, len(c.stored))
		}
	})
}

func TestNamesAreStoredInAdvance(t *testing.T) {
	reads := func(ctx context.Context) (*corev1.ConfigMap, error) {
		live, err := Output[*corev1.ConfigMap](ctx, "a")
		if err != nil {
			return nil, err
		}
		return newConfigMap("made-of-"+live.Name, nil), nil
	}
	uses := func(ctx context.Context) (*corev1.ConfigMap, error) {
		if _, err := Client(ctx); err == nil {
			return newConfigMap("reached", nil), nil
		}
		return newConfigMap("fell-back", nil), nil
	}
	t.Run("a name that depends on another object is stored when its node starts [F40]", func(t *testing.T) {
		c := newFakeSession()
		w := visitItem(t, mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap)).Add("b", Object(reads), "a")), newItem("i"), c)
		if !w.isReady() || len(c.claims) != 2 || c.reads != 1 {
			t.Error(w.err(), c.claims, c.reads)
		}
	})
	t.Run("the applied object has the name that was stored in advance, unless the body returns another name [F40]", func(t *testing.T) {
		other := Object(func(ctx context.Context) (*corev1.ConfigMap, error) {
			_, err := Output[*corev1.ConfigMap](ctx, "a")
			return newConfigMap("other", map[string]string{"early": fmt.Sprint(err != nil)}), nil
		})
		c := newFakeSession()
		w := visitItem(t, mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap)).Add("same", Object(newUnnamedConfigMap), "a").Add("other", other, "a")), newItem("i"), c)
		want := map[string]int{"a": 1, "same": 1, "other": 2}
		if diff := cmp.Diff(want, c.getClaimedCounts()); diff != "" || !w.isReady() {
			t.Error(diff, w.err())
		}
	})
	t.Run("a blocked component writes nothing, and no other component may use its names [F40]", func(t *testing.T) {
		c := newFakeSession()
		c.unready["db"] = "not yet"
		g := mustBuild(t, NewBuilder().Add("db", Object(newStatefulSet)).Add("web", Object(uses), "db").Add("panics", Object(func(context.Context) (*corev1.ConfigMap, error) {
			panic("too early")
		}), "db"))
		w := visitItem(t, g, newItemWithConfig("i", `{"Replicas":1}`), c)
		if names := c.listNames(); len(names) != 1 || w.errs[1] != nil || w.errs[2] != nil {
			t.Error(names, w.errs)
		}
	})
}
