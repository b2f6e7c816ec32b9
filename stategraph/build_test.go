// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// resourceWithoutListeners is a resource that may be unready but has no listener.
type resourceWithoutListeners struct{ stubResource }

func (resourceWithoutListeners) Listeners() []Listener { return nil }

// alwaysReadyResource is a resource that is always ready and has no listener.
type alwaysReadyResource struct{ resourceWithoutListeners }

func (alwaysReadyResource) AlwaysReady() bool { return true }

// notAlwaysReadyResource is a resource whose method AlwaysReady returns false.
type notAlwaysReadyResource struct{ resourceWithoutListeners }

func (notAlwaysReadyResource) AlwaysReady() bool { return false }

// listeningResource is a resource that has the given listeners.
type listeningResource struct {
	stubResource
	to []Listener
}

func (l listeningResource) Listeners() []Listener { return l.to }

// panickingResource is a resource whose methods panic.
type panickingResource struct{ stubResource }

func (panickingResource) Listeners() []Listener { panic("no") }

func TestBuildErrors(t *testing.T) {
	undo := func(context.Context) error { return nil }
	var nothing *externalResource
	tests := map[string]struct {
		builder *Builder
		want    []string // the expected lines of the error
	}{
		"a cycle is shown as a path [Y1]": {
			NewBuilder().Add("a", stubResource{}, "b").Add("b", stubResource{}, "c").Add("c", stubResource{}, "a").Add("d", stubResource{}, "a"),
			[]string{"components require each other: a → b → c → a"},
		},
		"the shortest of several cycles is shown [Y1]": {
			NewBuilder().Add("a", stubResource{}, "b").Add("b", stubResource{}, "c").Add("c", stubResource{}, "a", "d").Add("d", stubResource{}, "c"),
			[]string{"components require each other: c → d → c"},
		},
		"several errors are returned together": {
			NewBuilder().Add("Web", stubResource{}).Add("db", nil).Add("db", stubResource{}).Add("x", stubResource{}, "x", "dbs"),
			[]string{
				`component "Web": the name is not allowed: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-',` +
					` and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is` +
					` '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
				`component "db": has no resource (nil)`,
				`component "db": the name is used twice`,
				`component "x": requires itself`,
				`component "x": requires "dbs", which does not exist (did you mean "db"?)`,
			},
		},
		"a nil pointer is not a resource": {NewBuilder().Add("a", nothing), []string{`component "a": has no resource (nil)`}},
		"an empty graph":                  {NewBuilder(), []string{"the graph has no components"}},
		"a resource that may be unready needs a listener [Y11, Y13]": {
			NewBuilder().Add("a", resourceWithoutListeners{}),
			[]string{`component "a": may be unready, but has no listener that would trigger another check: add a listener, or make it always ready`},
		},
		"a marker method that returns false has no effect [Y11]": {
			NewBuilder().Add("a", notAlwaysReadyResource{}),
			[]string{`component "a": may be unready, but has no listener that would trigger another check: add a listener, or make it always ready`},
		},
		"an External with Ready needs a listener [Y11]": {
			NewBuilder().Add("a", External(ExternalSpec{Reconcile: undo, Ready: func(context.Context) (Readiness, error) { return Ready(), nil }})),
			[]string{`component "a": may be unready, but has no listener that would trigger another check: add a listener, or make it always ready`},
		},
		"invalid listeners": {
			NewBuilder().Add("a", listeningResource{to: []Listener{{}, Timer(time.Millisecond), Channel(nil), Watch()}}),
			[]string{
				`component "a": a listener is empty; use Watch, Timer, Poll or Channel`,
				`component "a": the interval 1ms of a listener is too short; use at least 1s`,
				`component "a": the channel of a listener is nil`,
				`component "a": has a listener for its objects, but no method Prepare that returns objects`,
			},
		},
		"a resource that panics": {NewBuilder().Add("a", panickingResource{}), []string{`component "a": a method of the resource panics: no`}},
		"removed components": {
			NewBuilder().Add("a", stubResource{}).AddRemoved("a", undo).AddRemoved("b", nil).AddRemoved("c", undo).AddRemoved("c", undo),
			[]string{
				`component "a" is declared as removed, but the graph still contains it`, `component "b" is declared as removed, but the function that deletes it is nil`, `component "c" is declared as removed twice`,
			},
		},
		"ready-made resources without functions": {
			NewBuilder().Add("a", External(ExternalSpec{})).Add("b", Object[*fakeObject](nil)).
				Add("c", ForEach(nil, func(string) string { return "" }, Object(newUnnamedConfigMap))).Add("d", ForEach[string](nil, nil, stubResource{})),
			[]string{
				`component "a": the External has no Reconcile`, `component "b": the body of Object is nil`,
				`component "c": the parameters elements and name of ForEach must not be nil`, `component "d": the parameter each of ForEach must be an Object, a Template or a Versioned`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.builder.Build()
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.Split(strings.TrimPrefix(err.Error(), "build state graph: "), "\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestBuild(t *testing.T) {
	t.Run("a resource that is always ready needs no listener [Y11]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("a", alwaysReadyResource{}).Add("b", External(ExternalSpec{Reconcile: func(context.Context) error { return nil }})))
		if !g.nodes[0].alwaysReady || !g.nodes[1].alwaysReady {
			t.Error("not marked")
		}
	})
	t.Run("the graph keeps the listeners of its resources [Y11]", func(t *testing.T) {
		events := make(chan types.NamespacedName)
		to := []Listener{Timer(time.Hour), Poll(time.Minute), Poll(time.Second), Timer(2 * time.Hour), Channel(events)}
		g := mustBuild(t, NewBuilder().Add("a", listeningResource{to: to}))
		if g.timer != time.Hour || g.nodes[0].poll != time.Second || len(g.nodes[0].listeners) != 5 {
			t.Errorf("timer %s, poll %s, %d listeners", g.timer, g.nodes[0].poll, len(g.nodes[0].listeners))
		}
	})
	t.Run("a graph does not change if its builder changes", func(t *testing.T) {
		b := NewBuilder().Add("a", stubResource{}).Add("b", stubResource{}, "a", "a")
		g := mustBuild(t, b)
		b.Add("c", stubResource{})
		g.Components()[0] = "x"
		g.Requires("b")[0] = "x"
		if diff := cmp.Diff([]string{"a", "b"}, g.Components()); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a"}, g.Requires("b")); diff != "" || g.Requires("zz") != nil {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("too many components", func(t *testing.T) {
		b := NewBuilder()
		for i := range maxComponents + 1 {
			b.Add(fmt.Sprintf("n%d", i), stubResource{})
		}
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), "at most 1000") {
			t.Error(err)
		}
	})
	t.Run("the inventory stores the nearest requirements that have objects [Yx7]", func(t *testing.T) {
		g := mustBuild(t, NewBuilder().Add("a", Object(newUnnamedConfigMap)).Add("b", stubResource{}, "a").Add("c", stubResource{}, "b").Add("d", Object(newUnnamedConfigMap), "c"))
		if diff := cmp.Diff(unit{Component: "d", Requires: []string{"a"}}, g.nodes[3].unit); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// newUncheckedGraph returns a graph with the given edges. Unlike Build, it does not check the graph, so the graph may
// have cycles.
func newUncheckedGraph(edges map[int][]int, n int) *Graph {
	g := &Graph{nodes: make([]node, n)}
	for place, requires := range edges {
		slices.Sort(requires)
		g.nodes[place].requires = slices.Compact(requires)
	}
	return g
}

// findCycleLength returns the length of the shortest cycle, or 0 if there is no cycle. It is used to check
// FindShortestCycle, and uses another algorithm: it computes which nodes are connected by paths of length 1, 2 and so
// on.
func findCycleLength(g *Graph) int {
	n := len(g.nodes)
	now := make([][]bool, n) // now[i][j] is true if a path of the current length leads from i to j
	for i := range now {
		now[i] = make([]bool, n)
		now[i][i] = true
	}
	for length := 1; length <= n; length++ {
		next := make([][]bool, n)
		for i := range next {
			next[i] = make([]bool, n)
			for _, required := range g.nodes[i].requires {
				for j := range n {
					next[i][j] = next[i][j] || now[required][j]
				}
			}
			if next[i][i] {
				return length
			}
		}
		now = next
	}
	return 0
}

func TestShortestCycle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // not for secrets
	t.Run("the shortest cycle of a random graph is found [Y1]", func(t *testing.T) {
		cyclic := 0
		for range 3000 {
			n := 2 + r.IntN(12)
			edges := map[int][]int{}
			for range r.IntN(2 * n) {
				from, to := r.IntN(n), r.IntN(n)
				if from != to {
					edges[from] = append(edges[from], to)
				}
			}
			g := newUncheckedGraph(edges, n)
			cycle, want := graph.FindShortestCycle(g.listRequirements()), findCycleLength(g)
			if (want > 0) != (len(graph.Sort(g.listRequirements())) < n) {
				t.Fatalf("sorted %d of %d nodes, shortest cycle %d", len(graph.Sort(g.listRequirements())), n, want)
			}
			if len(cycle) != 0 && len(cycle)-1 != want || want > 0 && cycle == nil {
				t.Fatalf("%v: %v is not the shortest: %d", edges, cycle, want)
			}
			for i := 1; i < len(cycle); i++ {
				if !slices.Contains(g.nodes[cycle[i-1]].requires, cycle[i]) {
					t.Fatalf("%v: %v is no path", edges, cycle)
				}
			}
			if want > 0 {
				cyclic++
				if cycle[0] != cycle[len(cycle)-1] {
					t.Fatalf("%v does not end where it begins", cycle)
				}
			}
		}
		if cyclic < 500 {
			t.Errorf("only %d graphs with a cycle", cyclic)
		}
	})
}
