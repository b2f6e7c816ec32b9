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

// maxComponents is the maximum number of components of one graph.
const maxComponents = 1000

// Builder collects the components of a graph. The zero value is not usable; see NewBuilder.
type Builder struct {
	components []componentSpec
	removed    []removedSpec
	exports    []exportSpec
	decode     func(*lsv1alpha1.DeployItem) (any, error) // set by NewBuilderOf; otherwise nil
	errs       []error
}

// componentSpec contains the arguments of a call of Builder.Add. Build checks them.
type componentSpec struct {
	component string
	resource  Resource
	requires  []string
}

// removedSpec contains the arguments of a call of Builder.AddRemoved.
type removedSpec struct {
	component string
	undo      func(ctx context.Context) error
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder { return &Builder{} }

// Add adds a component. The components named in requires must be ready before this component is reconciled. The
// required components may be added later. The component name becomes part of object labels and object names. It
// consists of at most 63 lower case letters, digits and "-". Build returns an error if an argument is invalid.
func (b *Builder) Add(component string, resource Resource, requires ...string) *Builder {
	b.components = append(b.components, componentSpec{component: component, resource: resource, requires: requires})
	return b
}

// AddRemoved sets a function that replaces the Delete of a component that the graph no longer contains. Call AddRemoved
// when you remove a component with a Delete from the graph. The library calls `undo` once for each item whose status
// says that the Delete of the component must still be called. If an item has several such components, the requirements
// that are stored with the item determine the order of the calls. A component without a Delete does not need
// AddRemoved, because the library deletes the objects that the inventory lists.
func (b *Builder) AddRemoved(component string, undo func(ctx context.Context) error) *Builder {
	b.removed = append(b.removed, removedSpec{component: component, undo: undo})
	return b
}

// Build checks the components and returns the graph, or an error that lists everything that is invalid. It reports
// names that are not allowed or used twice, components without a resource, requirements that do not exist or refer to
// the component itself, requirements in a cycle (the error shows the shortest cycle), resources that have no listener
// although they may be unready, references to components or outputs that do not exist, and errors of a resource, such
// as a missing template. Build also adds the requirements that follow from templates and from Uses.
func (b *Builder) Build() (*Graph, error) {
	g := &Graph{index: map[string]int{}, removed: map[string]func(context.Context) error{}, decode: b.decode}
	faults := slices.Clone(b.errs)
	if len(b.components) == 0 && len(faults) == 0 {
		faults = append(faults, errors.New("the graph has no components"))
	}
	if len(b.components) > maxComponents {
		faults = append(faults, fmt.Errorf("the graph has %d components, at most %d are allowed", len(b.components), maxComponents))
	}
	for _, p := range b.components {
		faults = append(faults, g.addComponent(p)...)
	}
	for _, p := range b.components {
		faults = append(faults, g.addRequirements(p)...)
	}
	faults = append(faults, g.addInferredRequirements()...)
	faults = append(faults, g.addExports(b.exports)...)
	faults = append(faults, g.addRemoved(b.removed)...)
	order := graph.Sort(g.listRequirements())
	if len(order) < len(g.nodes) {
		faults = append(faults, fmt.Errorf("components require each other: %s", strings.Join(g.toNames(graph.FindShortestCycle(g.listRequirements())), " → ")))
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("build state graph: %w", errors.Join(faults...))
	}
	g.setOrder(order)
	return g, nil
}

// addComponent adds a component to the graph, without its requirements.
func (g *Graph) addComponent(p componentSpec) []error {
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
	node, problems := newNode(p.component, p.resource)
	for _, problem := range problems {
		fault("%s", problem)
	}
	g.timer = minDuration(g.timer, node.timer)
	g.nodes = append(g.nodes, node)
	return faults
}

// addRequirements adds the requirements of a component.
func (g *Graph) addRequirements(p componentSpec) []error {
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

// addRemoved adds to the graph the functions that were passed to Builder.AddRemoved. It returns an error for each
// invalid call.
func (g *Graph) addRemoved(removed []removedSpec) []error {
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

// checker is a resource that reports its own faults when the graph is built.
type checker interface {
	check() []string
}

// newNode returns the node for a resource. To fill in the node, it calls methods of the resource such as Listeners. The
// resource may be nil, and its methods may panic.
func newNode(component string, resource Resource) (n node, faults []string) {
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
		n.alwaysReady = marker.AlwaysReady()
	}
	if c, ok := resource.(checker); ok {
		faults = append(faults, c.check()...)
	}
	n.listeners = resource.Listeners()
	return n, append(faults, n.checkListeners()...)
}

// checkListeners returns the errors in the listeners of the node. It also records the shortest Poll interval and the
// shortest Timer interval.
func (n *node) checkListeners() []string {
	var faults []string
	for _, l := range n.listeners {
		switch fault := l.validate(); {
		case fault != "":
			faults = append(faults, fault)
		case l.kind == listenerKindPoll:
			n.poll = minDuration(n.poll, l.interval)
		case l.kind == listenerKindTimer:
			n.timer = minDuration(n.timer, l.interval)
		case l.kind == listenerKindObjects && n.preparer == nil:
			faults = append(faults, "has a listener for its objects, but no method Prepare that returns objects")
		}
	}
	if len(n.listeners) == 0 && !n.alwaysReady {
		faults = append(faults, "may be unready, but has no listener that would trigger another check:"+
			" add a listener, or make it always ready")
	}
	return faults
}

// minDuration returns the shorter of two durations. Zero means that there is no duration.
func minDuration(a, b time.Duration) time.Duration {
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

// recoverPanic converts a panic of a resource to an error. It must be called by defer.
func recoverPanic(err *error) {
	if value := recover(); value != nil {
		*err = &deployerlib.PanicError{Value: value, Stack: debug.Stack()}
	}
}
