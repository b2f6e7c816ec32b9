// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// randomGraph returns a random graph with at most `largest` nodes. Each node requires only nodes whose names sort
// before its own name. The nodes are added in a random order.
func randomGraph(t testing.TB, r *rand.Rand, largest int) *Graph {
	t.Helper()
	n := 1 + r.IntN(largest)
	hidden := r.Perm(n)
	b := NewBuilder()
	density := r.Float64() * 3
	for i := range n {
		var requires []string
		for range int(density * r.Float64() * 2) {
			if at := hidden[i]; at > 0 {
				requires = append(requires, fmt.Sprintf("n%d", r.IntN(at)))
			}
		}
		b.Add(fmt.Sprintf("n%d", hidden[i]), stubResource{}, requires...)
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// findRequired returns all nodes that a node requires, directly or indirectly. It does not use the tested code.
func findRequired(g *Graph, place int, seen map[int]bool) map[int]bool {
	for _, required := range g.nodes[place].requires {
		if !seen[required] {
			seen[required] = true
			findRequired(g, required, seen)
		}
	}
	return seen
}

func TestRandomGraphs(t *testing.T) {
	const graphs = 10_000
	r := rand.New(rand.NewPCG(6, 41)) //nolint:gosec // not for secrets
	t.Run("random graphs run in order, block, converge and are removed [Y2, Y3, Y4, Y9, Yx7, Yx8]", func(t *testing.T) {
		for i := range graphs {
			largest := 12
			if i%20 == 0 {
				largest = 200
			}
			g := randomGraph(t, r, largest)
			if fault := checkRandom(t, g, r); fault != "" {
				t.Fatalf("graph %d: %s\n%s", i, fault, g.ToMermaid())
			}
		}
	})
}

// checkRandom walks a graph until all nodes are ready, and then removes it.
func checkRandom(t *testing.T, g *Graph, r *rand.Rand) string {
	says := map[string]string{}
	for _, name := range g.Components() {
		switch r.IntN(10) {
		case 0:
			says[name] = "waits"
		case 1:
			says[name] = "!fails"
		}
	}
	for round := 0; ; round++ {
		w, s := runWalk(t, g, 1+r.IntN(3), says)
		if fault := checkWalk(g, w, s, says); fault != "" {
			return fault
		}
		if w.isReady() {
			break
		}
		if round > len(g.nodes) {
			return "does not converge"
		}
		for name := range says { // let the visited nodes become ready
			if slices.Contains(s.order, name) {
				delete(says, name)
			}
		}
	}
	return checkRemoval(g)
}

// checkWalk checks that a walk has visited the right nodes, and each node after the nodes that it requires.
func checkWalk(g *Graph, w *walkResult, s *scriptedVisitor, says map[string]string) string {
	ran := map[string]int{}
	for i, name := range s.order {
		ran[name] = i + 1
	}
	if len(ran) != len(s.order) {
		return "a node ran twice"
	}
	for place := range g.nodes {
		name, blocked := g.nodes[place].component, false
		for required := range findRequired(g, place, map[int]bool{}) {
			other := g.nodes[required].component
			blocked = blocked || says[other] != ""
			if ran[name] > 0 && (ran[other] == 0 || ran[other] > ran[name]) {
				return fmt.Sprintf("%s ran before %s", name, other)
			}
		}
		if blocked == (ran[name] > 0) || blocked != (w.states[place].State == StateBlocked) {
			return fmt.Sprintf("%s: blocked %t, ran %t, state %s", name, blocked, ran[name] > 0, w.states[place].State)
		}
		for _, by := range w.states[place].BlockedBy {
			if says[by] == "" || ran[by] == 0 {
				return fmt.Sprintf("%s is blocked by %s, which is ready or blocked itself", name, by)
			}
		}
	}
	return ""
}

// checkRemoval checks that each node is removed after all nodes that require it.
func checkRemoval(g *Graph) string {
	requires := map[string][]string{}
	for i := range g.nodes {
		requires[g.nodes[i].component] = g.toNames(g.nodes[i].requires)
	}
	at := map[string]int{}
	for i, wave := range graph.GroupForRemoval(requires, g.Components()) {
		for _, name := range wave {
			at[name] = i + 1
		}
	}
	for i := range g.nodes {
		for _, required := range g.nodes[i].requires {
			if name, other := g.nodes[i].component, g.nodes[required].component; at[name] == 0 || at[name] >= at[other] {
				return fmt.Sprintf("%s requires %s, but goes in wave %d, the other in %d", name, other, at[name], at[other])
			}
		}
	}
	return ""
}
