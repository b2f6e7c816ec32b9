// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/internal/pace"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// Graph defines the components of a deploy item and the requirements between them. Builder.Build returns only valid
// graphs. A Graph never changes and contains no data of items. It is safe for concurrent use.
type Graph struct {
	nodes []node         // in the order in which the components were added
	index map[string]int // maps a component to its index in nodes
	// order is a fixed order in which each node comes after all nodes that it requires.
	order []int
	// ancestors contains, for each node, all nodes that it requires, directly or indirectly, in ascending order.
	ancestors [][]int
	removed   map[string]func(ctx context.Context) error // the functions that were passed to Builder.AddRemoved
	exports   []export
	decode    func(*lsv1alpha1.DeployItem) (any, error) // decodes the configuration; set only by NewBuilderOf
	timer     time.Duration                             // the shortest interval of all Timer listeners, or 0
	limit     pace.Limit                                // limits the durations that components request with WaitFor
}

// node is one component.
type node struct {
	component   string
	resource    Resource
	requires    []int // in ascending order, without duplicates
	dependents  []int
	listeners   []Listener
	poll        time.Duration // the shortest interval of a Poll listener, or 0
	timer       time.Duration // the shortest interval of a Timer listener, or 0
	alwaysReady bool          // the component is ready as soon as it is reconciled
	preparer    Preparer      // nil if the component has no objects
	deleter     Deleter       // nil if the component has nothing to undo
	unit        unit
}

// Components returns the names of all components, in the order in which they were added.
func (g *Graph) Components() []string {
	names := make([]string, len(g.nodes))
	for i := range g.nodes {
		names[i] = g.nodes[i].component
	}
	return names
}

// Order returns the names of all components in an order in which each component comes after all components that it
// requires. The order is the same in each process that builds the same graph.
func (g *Graph) Order() []string { return g.toNames(g.order) }

// Requires returns the components that a component requires directly, in the order in which they were added. It returns
// nil if the graph does not have the component.
func (g *Graph) Requires(component string) []string {
	place, found := g.index[component]
	if !found {
		return nil
	}
	return g.toNames(g.nodes[place].requires)
}

// hasObjects reports whether a component can have objects. Even then, it may have no objects for some items.
func (g *Graph) hasObjects(component string) bool {
	node := &g.nodes[g.index[component]]
	_, refers := node.resource.(*referenceResource)
	return refers || node.preparer != nil
}

// toNames returns the names of the components with the given indexes.
func (g *Graph) toNames(places []int) []string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = g.nodes[place].component
	}
	return names
}

// listRequirements returns, for each node, the nodes that it requires.
func (g *Graph) listRequirements() [][]int {
	all := make([][]int, len(g.nodes))
	for i := range g.nodes {
		all[i] = g.nodes[i].requires
	}
	return all
}

// ToMermaid returns a drawing of the graph for Markdown. An arrow leads from a component to each component that
// requires it. The same graph always gives the same text.
func (g *Graph) ToMermaid() string { return graph.ToMermaid(g.Components(), g.listRequirements()) }

// setOrder sets the fields of the graph that are computed from the requirements. The result of graph.Sort, order, must
// contain all nodes.
func (g *Graph) setOrder(order []int) {
	g.order, g.ancestors = order, graph.ListAncestors(g.listRequirements(), order)
	for i, dependents := range graph.ListDependents(g.listRequirements()) {
		g.nodes[i].dependents = dependents
	}
	g.setUnits()
}

// setUnits computes, for each node, the requirements that are stored with an item. Only nodes with objects or a Delete
// are stored. If a node requires a node that is not stored, the requirements of that other node are stored in its
// place.
func (g *Graph) setUnits() {
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
		node.unit = unit{Component: node.component, Requires: g.toNames(nearest[place])}
	}
}
