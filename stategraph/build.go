// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// MaxComponents is the largest number of components of one graph.
const MaxComponents = 1000

// Builder collects the components of a graph. The zero value is not usable; see NewGraph.
type Builder struct {
	parts   []part
	removed []removal
	exports []exported
	decode  func(*lsv1alpha1.DeployItem) (any, error) // from NewGraphOf; if it is nil, each body decodes for itself
	faults  []error
}

// part is a component before it is checked.
type part struct {
	component string
	resource  Resource
	requires  []string
}

// removal is a component that the graph no longer has.
type removal struct {
	component string
	undo      func(ctx context.Context) error
}

// NewGraph returns an empty builder.
func NewGraph() *Builder { return &Builder{} }

// Add adds a component with its name, its resource, and the components that must be ready before it. These may be added
// later. The name is part of labels and of names of objects. It consists of at most 63 lower case letters, digits and
// "-". Build reports faults.
func (b *Builder) Add(component string, resource Resource, requires ...string) *Builder {
	b.parts = append(b.parts, part{component: component, resource: resource, requires: requires})
	return b
}

// Removed sets how to undo a component that was in an earlier version of the graph and had its own Delete. Items that
// still have the component call undo, in the order that was stored with them. Objects that a component kept need no
// Removed, because the inventory lists them.
func (b *Builder) Removed(component string, undo func(ctx context.Context) error) *Builder {
	b.removed = append(b.removed, removal{component: component, undo: undo})
	return b
}

// Build checks everything and returns the graph, or an error with all faults at once. Faults are names that are not
// allowed or used twice, components without a resource, requirements that do not exist or are the component itself,
// requirements in a cycle (the shortest one is shown), resources that may be unready but have no listener, faults that
// resources report about themselves, such as a missing template, and uses of components or outputs that do not exist. A
// component also requires what its resource uses without naming it here; see Template and Uses.
func (b *Builder) Build() (*Graph, error) {
	g := &Graph{index: map[string]int{}, removed: map[string]func(context.Context) error{}, decode: b.decode}
	faults := slices.Clone(b.faults)
	if len(b.parts) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("the graph has no components"))
	}
	if len(b.parts) > MaxComponents {
		faults = append(faults, fmt.Errorf("the graph has %d components, at most %d are allowed", len(b.parts), MaxComponents))
	}
	for _, p := range b.parts {
		faults = append(faults, g.add(p)...)
	}
	for _, p := range b.parts {
		faults = append(faults, g.require(p)...)
	}
	faults = append(faults, g.infer()...)
	faults = append(faults, g.addExports(b.exports)...)
	faults = append(faults, g.remove(b.removed)...)
	order := graph.Sort(g.requires())
	if len(order) < len(g.nodes) {
		faults = append(faults, fmt.Errorf("components require each other: %s", strings.Join(g.names(graph.ShortestCycle(g.requires())), " → ")))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("build state graph: %w", errors.Join(faults...))
	}
	g.link(order)
	return g, nil
}

// add adds a part to the graph, without its requirements.
func (g *Graph) add(p part) []error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("component %q: "+format, append([]any{p.component}, args...)...))
	}
	for _, problem := range validation.IsDNS1123Label(p.component) {
		fault("the name is not allowed: %s", problem)
	}
	if _, twice := g.index[p.component]; twice {
		fault("the name is used twice")
		return faults
	}
	g.index[p.component] = len(g.nodes)
	node, problems := inspect(p.component, p.resource)
	for _, problem := range problems {
		fault("%s", problem)
	}
	if node.timer() > 0 && (g.timer == 0 || node.timer() < g.timer) {
		g.timer = node.timer()
	}
	g.nodes = append(g.nodes, node)
	return faults
}

// require connects a part with what it requires.
func (g *Graph) require(p part) []error {
	place := g.index[p.component]
	node := &g.nodes[place]
	var faults []error
	for _, name := range p.requires {
		required, found := g.index[name]
		switch {
		case name == p.component:
			faults = append(faults, fmt.Errorf("component %q: requires itself", p.component))
		case !found:
			faults = append(faults, fmt.Errorf("component %q: requires %q, which does not exist%s", p.component, name,
				graph.Suggest(name, slices.Sorted(maps.Keys(g.index)))))
		case !slices.Contains(node.requires, required):
			node.requires = append(node.requires, required)
		}
	}
	slices.Sort(node.requires)
	return faults
}

// remove records how former components are undone.
func (g *Graph) remove(removed []removal) []error {
	var faults []error
	for _, r := range removed {
		_, present := g.index[r.component]
		_, twice := g.removed[r.component]
		switch {
		case r.undo == nil:
			faults = append(faults, fmt.Errorf("removed component %q: nothing undoes it", r.component))
		case present:
			faults = append(faults, fmt.Errorf("removed component %q: the graph still has it", r.component))
		case twice:
			faults = append(faults, fmt.Errorf("removed component %q: is named twice", r.component))
		}
		g.removed[r.component] = r.undo
	}
	return faults
}

// checked is a resource that can report its own faults when the graph is built.
type checked interface {
	check() []string
}

// inspect calls the methods of a resource that describe it. The resource may be nil, or panic.
func inspect(component string, resource Resource) (n node, faults []string) {
	n = node{component: component, resource: resource}
	if isNil(resource) {
		return n, []string{"has no resource (nil)"}
	}
	defer func() {
		if value := recover(); value != nil {
			faults = append(faults, fmt.Sprintf("panics when it is looked at: %v", value))
		}
	}()
	n.preparer, _ = resource.(Preparer)
	n.deleter, _ = resource.(Deleter)
	if marker, ok := resource.(AlwaysReady); ok {
		n.always = marker.AlwaysReady()
	}
	if c, ok := resource.(checked); ok {
		faults = append(faults, c.check()...)
	}
	n.listeners = resource.Listeners()
	return n, append(faults, n.listenerFaults()...)
}

// listenerFaults checks the listeners of the node, and records the shortest poll interval.
func (n *node) listenerFaults() []string {
	var faults []string
	for _, l := range n.listeners {
		switch fault := l.fault(); {
		case fault != "":
			faults = append(faults, fault)
		case l.kind == listensToPoll:
			n.poll = shorter(n.poll, l.every)
		case l.kind == listensToObjects && n.preparer == nil:
			faults = append(faults, "listens to its objects, but keeps none: it has no Prepare")
		}
	}
	if len(n.listeners) == 0 && !n.always {
		faults = append(faults, "may be unready, but listens to nothing, so nobody would look at it again:"+
			" add a listener, or say that it is always ready")
	}
	return faults
}

// timer returns the shortest Timer of the node, or 0 if it has none.
func (n *node) timer() time.Duration {
	var shortest time.Duration
	for _, l := range n.listeners {
		if l.kind == listensToTimer {
			shortest = shorter(shortest, l.every)
		}
	}
	return shortest
}

// shorter returns the shorter of two durations, of which 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// isNil reports whether a resource is nil or an interface that holds a nil pointer, map or function.
func isNil(resource Resource) bool {
	if resource == nil {
		return true
	}
	switch v := reflect.ValueOf(resource); v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan, reflect.Interface:
		return v.IsNil()
	default:
		return false
	}
}

// recovered converts the panic of a resource to an error. Use it in a deferred call.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &deployerlib.PanicError{Value: value, Stack: debug.Stack()}
	}
}
