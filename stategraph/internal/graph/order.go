// SPDX-License-Identifier: Apache-2.0

// Package graph computes orders, cycles and drawings of graphs. A node is a number. Nodes are numbered in the order in
// which they were added. For each node, requires contains the nodes that it requires.
package graph

import "slices"

// Sort returns the nodes in an order in which each node comes after all nodes that it requires. It works in rounds.
// Each round appends, in ascending order, all remaining nodes whose required nodes were appended in earlier rounds.
// Nodes on a cycle, and nodes that require such nodes, are missing in the result.
func Sort(requires [][]int) []int {
	open := make([]int, len(requires)) // for each node, the number of required nodes that are not in `order` yet
	dependents := ListDependents(requires)
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

// ListDependents returns, for each node, the nodes that require it, in ascending order.
func ListDependents(requires [][]int) [][]int {
	dependents := make([][]int, len(requires))
	for node := range requires {
		for _, required := range requires[node] {
			dependents[required] = append(dependents[required], node)
		}
	}
	return dependents
}

// ListAncestors returns, for each node, all nodes that it requires, directly or indirectly, in ascending order. Pass
// the result of Sort as order.
func ListAncestors(requires [][]int, order []int) [][]int {
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

// IsRequired reports whether the node `from` requires the node `to`, directly or indirectly. The graph may have cycles.
func IsRequired(requires [][]int, from, to int) bool {
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

// FindShortestCycle returns the nodes of a shortest cycle of requirements, or nil if there is no cycle. The first node
// of the result is also its last node. If several cycles are equally short, FindShortestCycle returns the one whose
// first node has the lowest number.
func FindShortestCycle(requires [][]int) []int {
	var best []int
	for start := range requires {
		if way := findCycleThrough(requires, start, len(best)); way != nil {
			best = way
		}
	}
	return best
}

// findCycleThrough uses a breadth-first search to find the shortest cycle through the node `start`. The result has the
// same form as the result of FindShortestCycle. It is nil if there is no such cycle, or if the result would have at
// least `limit` nodes. A limit of 0 means no limit.
func findCycleThrough(requires [][]int, start, limit int) []int {
	from := map[int]int{}
	for nodes, length := []int{start}, 2; len(nodes) > 0 && (limit == 0 || length < limit); length++ {
		var next []int
		for _, node := range nodes {
			if slices.Contains(requires[node], start) {
				return buildPath(from, start, node)
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

// buildPath returns the path from the node `start` to the node `last`, followed by `start`. For each node of the path
// except `start`, the map `from` contains the previous node.
func buildPath(from map[int]int, start, last int) []int {
	out := []int{start}
	for node := last; node != start; node = from[node] {
		out = append(out, node)
	}
	out = append(out, start)
	slices.Reverse(out)
	return out
}

// GroupForRemoval divides the nodes in `gone` into groups, and returns the groups in the order in which they must be
// removed. All nodes of one group can be removed at the same time. A node is in a later group than all nodes that
// require it, directly or indirectly. Intermediate nodes count even if they are not in `gone`. If nodes require each
// other, they are in the same group. Such cycles are possible because different versions of a graph may have stored the
// requirements.
func GroupForRemoval(requires map[string][]string, gone []string) [][]string {
	behind := make(map[string]map[string]bool, len(gone))
	for _, name := range gone {
		behind[name] = listRequired(requires, name)
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

// listRequired returns all nodes that the node `name` requires, directly or indirectly.
func listRequired(requires map[string][]string, name string) map[string]bool {
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
