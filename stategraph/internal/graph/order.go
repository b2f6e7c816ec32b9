// SPDX-License-Identifier: Apache-2.0

// Package graph computes what follows from the edges of a graph alone: orders, cycles and pictures. Nodes are numbers,
// in the order in which they were added. The parameter requires lists for each node the nodes that it requires.
package graph

import "slices"

// Sort returns the nodes in an order in which each comes after all that it requires. Of several that could come next,
// it takes the one that was added first. It leaves out nodes on a cycle, and those behind them.
func Sort(requires [][]int) []int {
	open := make([]int, len(requires)) // how many requirements are not yet in order
	dependents := Dependents(requires)
	var next []int
	for node := range requires {
		if open[node] = len(requires[node]); open[node] == 0 {
			next = append(next, node)
		}
	}
	order := make([]int, 0, len(requires))
	for len(next) > 0 {
		order = append(order, next...)
		var following []int
		for _, node := range next {
			for _, dependent := range dependents[node] {
				if open[dependent]--; open[dependent] == 0 {
					following = append(following, dependent)
				}
			}
		}
		slices.Sort(following)
		next = following
	}
	return order
}

// Dependents returns for each node those that require it, in ascending order.
func Dependents(requires [][]int) [][]int {
	dependents := make([][]int, len(requires))
	for node := range requires {
		for _, required := range requires[node] {
			dependents[required] = append(dependents[required], node)
		}
	}
	return dependents
}

// Ancestors returns for each node all that it requires, directly or not, in ascending order. order is the result of
// Sort.
func Ancestors(requires [][]int, order []int) [][]int {
	ancestors := make([][]int, len(requires))
	for _, node := range order {
		var all []int
		for _, required := range requires[node] {
			all = append(append(all, required), ancestors[required]...)
		}
		slices.Sort(all)
		ancestors[node] = slices.Compact(all)
	}
	return ancestors
}

// Reaches reports whether a node requires another one, directly or not. The graph may have cycles.
func Reaches(requires [][]int, from, to int) bool {
	seen := map[int]bool{}
	for next := slices.Clone(requires[from]); len(next) > 0; {
		node := next[len(next)-1]
		next = next[:len(next)-1]
		if node == to {
			return true
		}
		if !seen[node] {
			seen[node] = true
			next = append(next, requires[node]...)
		}
	}
	return false
}

// ShortestCycle returns the shortest way from a node along requirements back to it. The first node is also the last. Of
// several such ways it returns the one that begins with the node that was added first. It returns nil if there is none.
func ShortestCycle(requires [][]int) []int {
	var best []int
	for start := range requires {
		if way := wayBack(requires, start, len(best)); way != nil {
			best = way
		}
	}
	return best
}

// wayBack returns the shortest way from a node to itself, by a breadth-first search. It returns nil if there is none
// with fewer than limit nodes, where 0 means no limit.
func wayBack(requires [][]int, start, limit int) []int {
	from := map[int]int{}
	for nodes, length := []int{start}, 2; len(nodes) > 0 && (limit == 0 || length < limit); length++ {
		var next []int
		for _, node := range nodes {
			if slices.Contains(requires[node], start) {
				return way(from, start, node)
			}
			for _, required := range requires[node] {
				if _, seen := from[required]; !seen {
					from[required] = node
					next = append(next, required)
				}
			}
		}
		nodes = next
	}
	return nil
}

// way follows from back from the last node to start, and closes the cycle.
func way(from map[int]int, start, last int) []int {
	out := []int{start}
	for node := last; node != start; node = from[node] {
		out = append(out, node)
	}
	out = append(out, start)
	slices.Reverse(out)
	return out
}

// Removal returns the order in which nodes are removed. The nodes of the first group are removed at once, those of the
// next when the group before is gone, and so on. A node is removed after all that require it, directly or through
// others, even through nodes that stay. Orders that were stored by several versions of a graph may contradict each
// other. Nodes that require each other are removed together.
func Removal(requires map[string][]string, gone []string) [][]string {
	behind := make(map[string]map[string]bool, len(gone))
	for _, name := range gone {
		behind[name] = reach(requires, name)
	}
	group := make(map[string]int, len(gone))
	var groupOf func(name string) int
	groupOf = func(name string) int {
		if known, found := group[name]; found {
			return known
		}
		own := 0
		for _, other := range gone {
			if behind[other][name] && !behind[name][other] {
				own = max(own, groupOf(other)+1)
			}
		}
		group[name] = own
		return own
	}
	groups := [][]string{}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(gone))) {
		for len(groups) <= groupOf(name) {
			groups = append(groups, nil)
		}
		groups[groupOf(name)] = append(groups[groupOf(name)], name)
	}
	return groups
}

// reach returns all nodes that a node requires, directly or not.
func reach(requires map[string][]string, name string) map[string]bool {
	seen := map[string]bool{}
	for next := slices.Clone(requires[name]); len(next) > 0; {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		if !seen[last] {
			seen[last] = true
			next = append(next, requires[last]...)
		}
	}
	return seen
}
