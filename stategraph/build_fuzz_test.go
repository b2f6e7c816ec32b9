// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzBuild builds graphs from any text. Each line names a component and the components that it requires. The result
// must be either a graph or an error. If there is a cycle, the error must show it. A walk must visit required
// components first. If a component waits or fails, the walk must not visit the components that require it. The removal
// must take place in reverse order.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		"a\nb a", "a b\nb a", "a a", " \n\n", "Ä x", "a\na\nb zz", "a b\nb c\nc a b", "w\nb w\nc b", "f\nw f\nx f w\ny x\nz", "a b b b\nb",
		"d a b c\nc a b\nb a\na", "a b\nb c\nc d\nd b\ne a", strings.Repeat("a-", 40), "0 1\n1 2\n2 3\n3 0\n4",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<12 {
			return
		}
		g, err := parseGraph(text)
		if (g == nil) == (err == nil) {
			t.Fatalf("graph %v, error %v", g, err)
		}
		cyclic := hasCycle(text)
		if told := err != nil && strings.Contains(err.Error(), "components require each other: "); told != cyclic {
			t.Fatalf("has a cycle: %t, but the error is %v", cyclic, err)
		}
		if err != nil {
			if _, again := parseGraph(text); again == nil || again.Error() != err.Error() {
				t.Fatalf("first %v, then %v", err, again)
			}
			return
		}
		checkGraph(t, g, text)
	})
}

func parseGraph(text string) (*Graph, error) {
	b := NewBuilder()
	for l := range strings.SplitSeq(text, "\n") {
		if words := strings.Fields(l); len(words) > 0 {
			b.Add(words[0], stubResource{}, words[1:]...)
		}
	}
	return b.Build()
}

// hasCycle reports whether the requirements in a text contain a cycle. It repeatedly removes all components that
// require no remaining component. If components are left at the end, there is a cycle. If several lines name the same
// component, their requirements are joined. hasCycle ignores components that require themselves, and required
// components that do not exist.
func hasCycle(text string) bool {
	edges := map[string][]string{}
	for l := range strings.SplitSeq(text, "\n") {
		if words := strings.Fields(l); len(words) > 0 {
			edges[words[0]] = append(edges[words[0]], words[1:]...)
		}
	}
	for left := -1; left != len(edges); {
		left = len(edges)
		for name, requires := range edges {
			if !slices.ContainsFunc(requires, func(other string) bool { return other != name && edges[other] != nil }) {
				delete(edges, name)
			} else if edges[name] == nil {
				edges[name] = []string{}
			}
		}
	}
	return len(edges) > 0
}

func checkGraph(t *testing.T, g *Graph, text string) {
	t.Helper()
	says := map[string]string{}
	for _, name := range g.Components() {
		switch name[0] {
		case 'w':
			says[name] = "waits"
		case 'f':
			says[name] = "!fails"
		}
	}
	w, s := runWalk(t, g, 1+len(text)%3, says)
	if fault := checkWalk(g, w, s, says); fault != "" || w.isReady() != (len(says) == 0) {
		t.Fatalf("%s; ready %t with %v", fault, w.isReady(), says)
	}
	if fault := checkRemoval(g); fault != "" || g.ToMermaid() == "" {
		t.Fatalf("%s\n%s", fault, g.ToMermaid())
	}
	order := g.Order()
	for i, name := range order {
		for _, required := range g.Requires(name) {
			if at := slices.Index(order, required); at < 0 || at >= i {
				t.Fatalf("%v: %s is not before %s", order, required, name)
			}
		}
	}
	again, err := parseGraph(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(order, again.Order()); diff != "" || len(order) != len(g.Components()) {
		t.Fatalf("another order: %s", diff)
	}
}
