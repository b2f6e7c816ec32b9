// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"maps"
	"slices"
)

// removalWaves says in what order components are taken away: those of the first wave at once, those of the next when the
// wave before is gone, and so on. A component goes after all that require it, directly or through others, also through
// such as stay or are unknown to gone. requires is what was stored with each component (and, for those without a trace,
// what the graph says); nothing else is looked at, above all no body or template. Stored orders of several versions of a
// graph may contradict each other: components in a circle go in the same wave.
func removalWaves(requires map[string][]string, gone []string) [][]string {
	at := map[string]int{} // in which wave a component may go, as far as is known
	waves := [][]string{}
	for _, group := range stronglyConnected(requires, gone) { // those that require others come first
		wave := 0
		for _, name := range group {
			wave = max(wave, at[name])
		}
		later := wave // when what the group requires may go
		for _, name := range group {
			if slices.Contains(gone, name) {
				for len(waves) <= wave {
					waves = append(waves, nil)
				}
				waves[wave] = append(waves[wave], name)
				later = wave + 1
			}
		}
		push(at, group, requires, later)
	}
	for _, wave := range waves {
		slices.Sort(wave)
	}
	return waves
}

// push lets all that a group requires go in the given wave at the earliest.
func push(at map[string]int, group []string, requires map[string][]string, wave int) {
	for _, name := range group {
		for _, required := range requires[name] {
			at[required] = max(at[required], wave)
		}
	}
}

// stronglyConnected groups components that require each other; most groups are of one. Each group comes before all that it
// requires. It is Tarjan's algorithm, in the order of names.
func stronglyConnected(requires map[string][]string, more []string) [][]string {
	t := &tarjan{requires: requires, number: map[string]int{}, low: map[string]int{}, open: map[string]bool{}}
	names := slices.Concat(slices.Collect(maps.Keys(requires)), more)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if t.number[name] == 0 {
			t.visit(name)
		}
	}
	slices.Reverse(t.groups)
	return t.groups
}

// tarjan finds strongly connected components; each after those that it leads to.
type tarjan struct {
	requires map[string][]string
	number   map[string]int // from 1
	low      map[string]int
	open     map[string]bool
	stack    []string
	groups   [][]string
}

func (t *tarjan) visit(name string) {
	t.number[name] = len(t.number) + 1
	t.low[name] = t.number[name]
	t.stack = append(t.stack, name)
	t.open[name] = true
	for _, required := range t.requires[name] {
		if t.number[required] == 0 {
			t.visit(required)
			t.low[name] = min(t.low[name], t.low[required])
		} else if t.open[required] {
			t.low[name] = min(t.low[name], t.number[required])
		}
	}
	if t.low[name] != t.number[name] {
		return
	}
	at := slices.Index(t.stack, name)
	group := slices.Clone(t.stack[at:])
	t.stack = t.stack[:at]
	for _, member := range group {
		t.open[member] = false
	}
	slices.Sort(group)
	t.groups = append(t.groups, group)
}

// prunable tells whether what a component of the graph no longer keeps may be deleted: it and all that require it, directly
// or not, are ready without.
func (w *walked) prunable(component string) bool {
	place, found := w.graph.index[component]
	if !found {
		return w.ready()
	}
	for i := range w.states {
		behind := slices.Contains(w.graph.ancestors[i], place)
		if (i == place || behind) && w.states[i].State != StateReady {
			return false
		}
	}
	return true
}

// relations is who requires whom when a graph meets what is stored about an item: the stored order counts, the graph's is
// for components that left no trace.
func (g *Graph) relations(stored map[string][]string) map[string][]string {
	all := make(map[string][]string, len(stored)+len(g.nodes))
	for i := range g.nodes {
		all[g.nodes[i].component] = g.names(g.nodes[i].requires)
	}
	maps.Copy(all, stored)
	return all
}
