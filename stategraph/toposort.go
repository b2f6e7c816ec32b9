// SPDX-License-Identifier: Apache-2.0

package stategraph

import "slices"

// sort returns the nodes so that each comes after all that it requires; of several that could come next, the one that
// was added first. Nodes on a cycle, and those behind it, are left out.
func (g *Graph) sort() []int {
	open := make([]int, len(g.nodes)) // how many requirements are not yet in order
	dependents := make([][]int, len(g.nodes))
	wave := []int{}
	for place := range g.nodes {
		open[place] = len(g.nodes[place].requires)
		for _, required := range g.nodes[place].requires {
			dependents[required] = append(dependents[required], place)
		}
		if open[place] == 0 {
			wave = append(wave, place)
		}
	}
	order := make([]int, 0, len(g.nodes))
	for len(wave) > 0 {
		order = append(order, wave...)
		var next []int
		for _, place := range wave {
			for _, dependent := range dependents[place] {
				if open[dependent]--; open[dependent] == 0 {
					next = append(next, dependent)
				}
			}
		}
		slices.Sort(next)
		wave = next
	}
	return order
}

// shortestCycle returns the shortest way from a node along requirements back to it; the first node is also the last. Of
// several it is the one that begins with the node that was added first. nil: there is none.
func (g *Graph) shortestCycle() []int {
	var best []int
	for start := range g.nodes {
		if way := g.wayBack(start, len(best)); way != nil {
			best = way
		}
	}
	return best
}

// wayBack is the shortest way from a node to itself, breadth first; nil when there is none with fewer than limit nodes
// (0: no limit).
func (g *Graph) wayBack(start, limit int) []int {
	from := map[int]int{}
	for wave, length := []int{start}, 2; len(wave) > 0 && (limit == 0 || length < limit); length++ {
		for _, place := range wave {
			if slices.Contains(g.nodes[place].requires, start) {
				return way(from, start, place)
			}
		}
		wave = g.step(wave, from)
	}
	return nil
}

// step is what the nodes of a wave require and no earlier one did. from notes by which node each was found.
func (g *Graph) step(wave []int, from map[int]int) []int {
	var next []int
	for _, place := range wave {
		for _, required := range g.nodes[place].requires {
			if _, seen := from[required]; !seen {
				from[required] = place
				next = append(next, required)
			}
		}
	}
	return next
}

// way follows from back from the last node to start, and closes the circle.
func way(from map[int]int, start, last int) []int {
	out := []int{start}
	for place := last; place != start; place = from[place] {
		out = append(out, place)
	}
	out = append(out, start)
	slices.Reverse(out)
	return out
}
