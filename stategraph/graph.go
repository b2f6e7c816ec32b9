// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// Graph defines which components exist for a deploy item, and which requires which. It is checked when it is built,
// never changes afterwards, holds nothing about any item, and may be used by many goroutines.
type Graph struct {
	nodes []node         // in the order in which they were added
	index map[string]int // component -> place in nodes
	// order is a fixed order in which each node comes after all that it requires.
	order []int
	// ancestors are all nodes that a node requires, directly or not, in ascending order.
	ancestors [][]int
	removed   map[string]func(ctx context.Context) error
	exports   []export
	decode    func(*lsv1alpha1.DeployItem) (any, error) // if it is nil, each body decodes for itself
	timer     time.Duration                             // the shortest Timer of all nodes, or 0
}

// node is one component.
type node struct {
	component  string
	resource   Resource
	requires   []int // in ascending order, each once
	dependents []int
	listeners  []Listener
	poll       time.Duration // the shortest Poll, or 0
	always     bool          // ready once it is reconciled
	preparer   Preparer      // nil if it keeps no objects
	deleter    Deleter       // nil if there is nothing to undo
	unit       unit
}

// Components returns the names of all components, in the order in which they were added.
func (g *Graph) Components() []string {
	names := make([]string, len(g.nodes))
	for i := range g.nodes {
		names[i] = g.nodes[i].component
	}
	return names
}

// Order returns the names of all components, each after all that it requires. It is the same whenever the graph is built
// from the same parts.
func (g *Graph) Order() []string { return g.names(g.order) }

// Requires returns what a component requires directly, in the order in which the components were added. It returns nil
// for a component that the graph does not have.
func (g *Graph) Requires(component string) []string {
	place, found := g.index[component]
	if !found {
		return nil
	}
	return g.names(g.nodes[place].requires)
}

// hasObjects reports whether a component keeps objects, even if it has none for some items.
func (g *Graph) hasObjects(component string) bool {
	node := &g.nodes[g.index[component]]
	_, refers := node.resource.(*reference)
	return refers || node.preparer != nil
}

// names converts places to names of components.
func (g *Graph) names(places []int) []string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = g.nodes[place].component
	}
	return names
}

// requires returns what each node requires.
func (g *Graph) requires() [][]int {
	all := make([][]int, len(g.nodes))
	for i := range g.nodes {
		all[i] = g.nodes[i].requires
	}
	return all
}

// Mermaid draws the graph for Markdown. An arrow leads from a component to those that require it. The same graph always
// gives the same text.
func (g *Graph) Mermaid() string { return graph.Mermaid(g.Components(), g.requires()) }

// DOT draws the graph for Graphviz. An arrow leads from a component to those that require it. The same graph always
// gives the same text.
func (g *Graph) DOT() string { return graph.DOT(g.Components(), g.requires()) }

// link computes what follows from the nodes and their requirements, which have no cycle.
func (g *Graph) link(order []int) {
	g.order, g.ancestors = order, graph.Ancestors(g.requires(), order)
	for i, dependents := range graph.Dependents(g.requires()) {
		g.nodes[i].dependents = dependents
	}
	g.remember()
}

// remember computes what the inventory records about each node, namely the nearest nodes that it requires and that
// leave a trace in the inventory. Nodes in between are skipped.
func (g *Graph) remember() {
	nearest := make([][]int, len(g.nodes))
	for _, place := range g.order {
		node := &g.nodes[place]
		for _, required := range node.requires {
			if before := &g.nodes[required]; before.preparer != nil || before.deleter != nil {
				nearest[place] = append(nearest[place], required)
			} else {
				nearest[place] = append(nearest[place], nearest[required]...)
			}
		}
		slices.Sort(nearest[place])
		nearest[place] = slices.Compact(nearest[place])
		node.unit = unit{Component: node.component, Requires: g.names(nearest[place])}
	}
}
