// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// stubResource is a resource that does nothing.
type stubResource struct{}

func (stubResource) Reconcile(context.Context) error          { return nil }
func (stubResource) Ready(context.Context) (Readiness, error) { return Ready(), nil }
func (stubResource) Listeners() []Listener                    { return []Listener{Poll(minInterval)} }

// buildGraph builds a graph from lines such as "c: a b", which adds a component c that requires a and b.
func buildGraph(t testing.TB, lines ...string) *Graph {
	t.Helper()
	b := NewBuilder()
	for _, l := range lines {
		name, requires, _ := strings.Cut(l, ":")
		b.Add(name, stubResource{}, strings.Fields(requires)...)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// scriptedVisitor is a visitor that returns predefined results. The map `says` contains the result for the name of each
// node: "" means ready, a text that begins with "!" is an error, and any other text is the reason why the node is not
// ready.
type scriptedVisitor struct {
	graph   *Graph
	results map[string]string

	mu      sync.Mutex
	order   []string
	running atomic.Int64
	most    atomic.Int64
}

func (s *scriptedVisitor) recheck(ctx context.Context, place int) (Readiness, error) {
	return s.visit(ctx, place)
}

func (s *scriptedVisitor) visit(_ context.Context, place int) (Readiness, error) {
	now := s.running.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	defer s.running.Add(-1)
	name := s.graph.nodes[place].component
	s.mu.Lock()
	s.order = append(s.order, name)
	s.mu.Unlock()
	says := s.results[name]
	if reason, found := strings.CutPrefix(says, "!"); found {
		return Readiness{}, errors.New(reason)
	}
	if says == "panic" {
		panic("oh")
	}
	return ReadyIf(says == "", says), nil
}

func runWalk(t testing.TB, g *Graph, parallel int, says map[string]string) (*walkResult, *scriptedVisitor) {
	t.Helper()
	s := &scriptedVisitor{graph: g, results: says}
	return g.newWalk(s).run(t.Context(), parallel), s
}

func TestWalk(t *testing.T) {
	diamond := []string{"bottom: left right", "left: top", "right: top", "top", "alone"}
	tests := map[string]struct {
		graph []string
		says  map[string]string
		want  []string
		err   string
	}{
		"each node is visited after its requirements [Y2, Y3, Y4]": {
			graph: diamond, want: []string{"bottom Ready", "left Ready", "right Ready", "top Ready", "alone Ready"},
		},
		"a component that is not ready blocks only its dependents [Y2, Y8, Y9]": {
			graph: diamond, says: map[string]string{"left": "1 of 2"},
			want: []string{"bottom Blocked by [left]", "left Progressing 1 of 2", "right Ready", "top Ready", "alone Ready"},
		},
		"blocking is transitive and names the nearest that are not ready [Y9, Yx9]": {
			graph: []string{"a", "b: a", "c: b", "d: c x", "x: y", "y"}, says: map[string]string{"a": "waits", "y": "!broken"},
			want: []string{
				"a Progressing waits", "b Blocked by [a]", "c Blocked by [a]", "d Blocked by [a y]", "x Blocked by [y]", "y Failed broken",
			},
			err: "component y: broken",
		},
		"failures do not stop independent branches, and are joined in the order of the graph [Yx8]": {
			graph: []string{"z", "a", "b: a", "c: z", "d", "e: d"}, says: map[string]string{"z": "!first", "a": "!second"},
			want: []string{"z Failed first", "a Failed second", "b Blocked by [a]", "c Blocked by [z]", "d Ready", "e Ready"},
			err:  "component z: first\ncomponent a: second",
		},
		"a panic fails only its component": {
			graph: []string{"a", "b"}, says: map[string]string{"a": "panic"},
			want: []string{"a Failed panic: oh", "b Ready"}, err: "component a: panic: oh",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w, _ := runWalk(t, buildGraph(t, test.graph...), 2, test.says)
			if diff := cmp.Diff(test.want, formatStates(w)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if got := fmt.Sprint(w.err()); test.err == "" && w.err() != nil || test.err != "" && got != test.err {
				t.Errorf("error %q, want %q", got, test.err)
			}
		})
	}
}

// formatStates formats each state as one line.
func formatStates(w *walkResult) []string {
	var out []string
	for _, s := range w.states {
		text := fmt.Sprintf("%s %s %s", s.Name, s.State, s.Reason)
		if s.State == StateBlocked {
			text = fmt.Sprintf("%s %s by %v", s.Name, s.State, s.BlockedBy)
		}
		out = append(out, strings.TrimSpace(text))
	}
	return out
}

func TestWalkIsDeterministic(t *testing.T) {
	t.Run("the nodes are visited in the order of the graph [Y3]", func(t *testing.T) {
		g := buildGraph(t, "d: b c", "c: a", "b: a", "a", "e")
		for range 20 {
			_, s := runWalk(t, g, 1, nil)
			if diff := cmp.Diff(g.Order(), s.order); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
		}
		if diff := cmp.Diff([]string{"a", "e", "c", "b", "d"}, g.Order()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// blockingVisitor is a visitor whose visits block until a given number of visits are running at the same time.
type blockingVisitor struct {
	scriptedVisitor
	want    int64
	open    chan struct{}
	entered atomic.Int64
}

func (g *blockingVisitor) visit(ctx context.Context, place int) (Readiness, error) {
	defer g.running.Add(-1)
	now := g.running.Add(1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	if g.entered.Add(1) == g.want {
		for range 10_000 {
			runtime.Gosched() // lets other goroutines enter
		}
		close(g.open)
	}
	select {
	case <-g.open:
		return Ready(), nil
	case <-ctx.Done():
		return Readiness{}, context.Cause(ctx)
	}
}

func TestWalkLimitsConcurrency(t *testing.T) {
	var lines []string
	for i := range 20 {
		lines = append(lines, fmt.Sprintf("n%d", i))
	}
	g := buildGraph(t, lines...)
	s := &blockingVisitor{scriptedVisitor: scriptedVisitor{graph: g}, want: 4, open: make(chan struct{})}
	w := g.newWalk(s).run(t.Context(), 4) // returns only if four visits run at the same time
	if !w.isReady() || s.most.Load() != 4 {
		t.Errorf("ready %t, at most %d at once, want 4", w.isReady(), s.most.Load())
	}
}

func TestWalkStopsWithContext(t *testing.T) {
	g := buildGraph(t, "a", "b: a", "c: b")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := &callbackVisitor{scriptedVisitor: scriptedVisitor{graph: g}, end: func() { cancel(errors.New("aborted")) }}
	w := g.newWalk(s).run(ctx, 1)
	want := []string{"a Ready", "b Progressing the run ended before the component was visited: aborted", "c Blocked by [b]"}
	if diff := cmp.Diff(want, formatStates(w)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w.err() == nil || w.err().Error() != "aborted" {
		t.Errorf("error %v", w.err())
	}
}

// callbackVisitor is a visitor whose first visit calls the function `end`.
type callbackVisitor struct {
	scriptedVisitor
	end func()
}

func (e *callbackVisitor) visit(context.Context, int) (Readiness, error) {
	e.end()
	return Ready(), nil
}
