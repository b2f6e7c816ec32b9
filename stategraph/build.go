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

// MaxComponents is the maximum number of components of one graph.
const MaxComponents = 1000

// Builder collects the components of a graph. The zero value is not usable; see NewGraph.
type Builder struct {
	parts   []part
	removed []removal
	exports []exported
	decode  func(*lsv1alpha1.DeployItem) (any, error) // set by NewGraphOf; otherwise nil
	faults  []error
}

// part contains the arguments of a call of Builder.Add. Build checks them.
type part struct {
	component string
	resource  Resource
	requires  []string
}

// removal contains the arguments of a call of Builder.Removed.
type removal struct {
	component string
	undo      func(ctx context.Context) error
}

// NewGraph returns an empty builder.
func NewGraph() *Builder { return &Builder{} }

// Add adds a component. The parameter `requires` names the components that must be ready before this component is
// reconciled. The required components may be added later. The component name becomes part of object labels and object
// names. It consists of at most 63 lower case letters, digits and "-". Build returns an error if an argument is
// invalid.
func (b *Builder) Add(component string, resource Resource, requires ...string) *Builder {
	b.parts = append(b.parts, part{component: component, resource: resource, requires: requires})
	return b
}

// Removed sets a function that replaces the Delete of a component that the graph no longer contains. Call Removed when
// you remove a component with a Delete from the graph. The library calls `undo` once for each item whose status says
// that the Delete of the component must still be called. If an item has several such components, the requirements that
// are stored with the item determine the order of the calls. A component without a Delete does not need Removed,
// because the library deletes the objects that the inventory lists.
func (b *Builder) Removed(component string, undo func(ctx context.Context) error) *Builder {
	b.removed = append(b.removed, removal{component: component, undo: undo})
	return b
}

// Build checks the components and returns the graph, or an error that lists everything that is invalid. It reports
// names that are not allowed or used twice, components without a resource, requirements that do not exist or refer to
// the component itself, requirements in a cycle (the error shows the shortest cycle), resources that have no listener
// although they may be unready, references to components or outputs that do not exist, and errors of a resource, such
// as a missing template. Build also adds the requirements that follow from templates and from Uses.
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

// add adds a component to the graph, without its requirements.
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
	g.timer = shorter(g.timer, node.timer)
	g.nodes = append(g.nodes, node)
	return faults
}

// require adds the requirements of a component.
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
			faults = append(faults, fmt.Errorf("component %q: requires %q, which does not exist%s", p.component, name, g.suggest(name)))
		case !slices.Contains(node.requires, required):
			node.requires = append(node.requires, required)
		}
	}
	slices.Sort(node.requires)
	return faults
}

// suggest returns a hint such as "did you mean ...?" for a misspelt component name, or "" if no component has a similar
// name.
func (g *Graph) suggest(component string) string {
	return graph.Suggest(component, slices.Sorted(maps.Keys(g.index)))
}

// remove adds to the graph the functions that were passed to Builder.Removed. It returns an error for each invalid
// call.
func (g *Graph) remove(removed []removal) []error {
	var faults []error
	for _, r := range removed {
		_, present := g.index[r.component]
		_, twice := g.removed[r.component]
		switch {
		case r.undo == nil:
			faults = append(faults, fmt.Errorf("component %q is declared as removed, but the function that deletes it is nil", r.component))
		case present:
			faults = append(faults, fmt.Errorf("component %q is declared as removed, but the graph still contains it", r.component))
		case twice:
			faults = append(faults, fmt.Errorf("component %q is declared as removed twice", r.component))
		}
		g.removed[r.component] = r.undo
	}
	return faults
}

// checked is a resource that reports its own faults when the graph is built.
type checked interface {
	check() []string
}

// inspect returns the node for a resource. To fill in the node, it calls methods of the resource such as Listeners. The
// resource may be nil, and its methods may panic.
func inspect(component string, resource Resource) (n node, faults []string) {
	n = node{component: component, resource: resource}
	if isNil(resource) {
		return n, []string{"has no resource (nil)"}
	}
	defer func() {
		if value := recover(); value != nil {
			faults = append(faults, fmt.Sprintf("a method of the resource panics: %v", value))
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

// listenerFaults returns the errors in the listeners of the node. It also records the shortest Poll interval and the
// shortest Timer interval.
func (n *node) listenerFaults() []string {
	var faults []string
	for _, l := range n.listeners {
		switch fault := l.fault(); {
		case fault != "":
			faults = append(faults, fault)
		case l.kind == listensToPoll:
			n.poll = shorter(n.poll, l.every)
		case l.kind == listensToTimer:
			n.timer = shorter(n.timer, l.every)
		case l.kind == listensToObjects && n.preparer == nil:
			faults = append(faults, "has a listener for its objects, but no method Prepare that returns objects")
		}
	}
	if len(n.listeners) == 0 && !n.always {
		faults = append(faults, "may be unready, but has no listener that would trigger another check:"+
			" add a listener, or make it always ready")
	}
	return faults
}

// shorter returns the shorter of two durations. Zero means that there is no duration.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// isNil reports whether a resource is a nil interface, or an interface that holds a nil pointer, map, function, slice
// or channel.
func isNil(resource Resource) bool {
	v := reflect.ValueOf(resource)
	return resource == nil || slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Map, reflect.Func, reflect.Slice, reflect.Chan}, v.Kind()) && v.IsNil()
}

// recovered converts a panic of a resource to an error. It must be called by defer.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = &deployerlib.PanicError{Value: value, Stack: debug.Stack()}
	}
}
