// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
)

// ErrNoRun is returned by functions that need the context of a run and are called with another one.
var ErrNoRun = errors.New("the context is not that of a component in a run of a state graph")

// Node is the component that a call is for, in one run for one deploy item. It gives access to everything that is known
// about the item. It must not be kept after the call.
type Node struct {
	run       *run
	place     int // in the graph
	component string
	instance  string
	element   any
	kept      *kept // nil if it was not prepared
	ahead     bool  // the turn of the component has not come, and only the names of its objects are wanted
	exports   bool  // the call is for an export of the component, which may use its own output
}

// kept is what a component keeps in the target cluster in this run.
type kept struct {
	desired  []apply.Desired
	outcomes []apply.Outcome
}

type nodeKey struct{}

// nodeContext is the context of the visit of a node. A run has one for each node, so that a visit does not allocate
// one.
type nodeContext struct {
	context.Context //nolint:containedctx // it is a context

	node *Node
}

// Value returns the node for its key.
func (c *nodeContext) Value(key any) any {
	if key == (nodeKey{}) {
		return c.node
	}
	return c.Context.Value(key)
}

// From returns the component that the call is for. It returns ErrNoRun if ctx is neither the context that a Resource
// was called with nor derived from it.
func From(ctx context.Context) (*Node, error) {
	if n, ok := ctx.Value(nodeKey{}).(*Node); ok {
		return n, nil
	}
	return nil, ErrNoRun
}

// with returns a context for calls of the node.
func (n *Node) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, nodeKey{}, n)
}

// Component returns the name of the component.
func (n *Node) Component() string { return n.component }

// Instance returns the name of the instance within ForEach. Elsewhere it is empty.
func (n *Node) Instance() string { return n.instance }

// Item returns a copy of the deploy item, as it was at the start of the run. Changing it has no effect.
func (n *Node) Item() *lsv1alpha1.DeployItem { return n.run.item.DeepCopy() }

// errAhead ends a body that needs more than is known before its turn.
var errAhead = errors.New("what the component requires is not ready")

// Client returns the client of the target cluster. Keep objects that should be deleted with the item with an Object or
// Template, because the inventory does not list objects that this client creates. Client returns an error if the deploy
// item has no target.
func (n *Node) Client() (client.Client, error) {
	if n.ahead {
		return nil, errAhead
	}
	if n.run.target == nil {
		return nil, fmt.Errorf("component %s needs a target cluster, but the deploy item has no target", n.component)
	}
	return n.run.target, nil
}

// Log returns a logger with the names of the item and the component.
func (n *Node) Log() logr.Logger {
	log := n.run.log.WithValues("component", n.component)
	if n.instance != "" {
		log = log.WithValues("instance", n.instance)
	}
	return log
}

// Item combines From and Node.Item.
func Item(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, err
	}
	return n.Item(), nil
}

// Config decodes spec.config of the deploy item strictly, as deployerlib.DecodeConfig does. Each call returns another
// value, so that components cannot change each other's.
func Config[T any](ctx context.Context) (*T, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, err
	}
	return deployerlib.DecodeConfig[T](n.run.item)
}

// Client combines From and Node.Client.
func Client(ctx context.Context) (client.Client, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, err
	}
	return n.Client()
}

// Log is Node.Log. Outside a run it returns the logger of the context, or one that writes nothing.
func Log(ctx context.Context) logr.Logger {
	if n, err := From(ctx); err == nil {
		return n.Log()
	}
	return logr.FromContextOrDiscard(ctx)
}

// Instance returns the name of the instance within ForEach. Elsewhere it is empty.
func Instance(ctx context.Context) string {
	if n, err := From(ctx); err == nil {
		return n.instance
	}
	return ""
}

// Element returns the element for which ForEach makes the current instance. It returns an error if the call is not for
// an instance of ForEach, or if the element has another type.
func Element[E any](ctx context.Context) (E, error) {
	var none E
	n, err := From(ctx)
	if err != nil {
		return none, err
	}
	if element, ok := n.element.(E); ok {
		return element, nil
	}
	if n.instance == "" {
		return none, fmt.Errorf("component %s has no elements: it is not made by ForEach", n.component)
	}
	return none, fmt.Errorf("component %s: the element is a %T, not a %T", n.component, n.element, none)
}

// mayUse returns an error unless the component may use the output of another one, which it must require, directly or
// not.
func (n *Node) mayUse(component string) error {
	place, found := n.run.graph.index[component]
	switch {
	case n.exports && component == n.component:
		return nil
	case component == n.component:
		return fmt.Errorf("component %s asks for its own output", n.component)
	case !found:
		return fmt.Errorf("component %s asks for the output of %q, which is no component%s", n.component, component,
			graph.Suggest(component, n.run.graph.Components()))
	case !slices.Contains(n.run.graph.ancestors[n.place], place):
		return fmt.Errorf("component %s asks for the output of %s, but does not require it", n.component, component)
	}
	return nil
}

// NewGraphOf is NewGraph for items whose spec.config is a C. In each run the configuration is decoded strictly, as by
// Config, and checked by the functions validate, once and before any component runs. An invalid configuration ends the
// job, and nothing is changed. Bodies get the configuration from With, or from Config. A deletion does not need it.
func NewGraphOf[C any](validate ...func(*C) error) *Builder {
	b := NewGraph()
	b.decode = func(item *lsv1alpha1.DeployItem) (any, error) {
		config, err := deployerlib.DecodeConfig[C](item)
		if err != nil {
			return nil, err
		}
		var faults []error
		for _, check := range validate {
			faults = append(faults, check(config))
		}
		return config, errors.Join(faults...)
	}
	return b
}

// Context is the context of a call for a component, with the configuration of the item.
type Context[C any] struct {
	context.Context

	// Config is spec.config of the item. All components of a run share it, so it must not be changed.
	Config *C
	// Item identifies the item.
	Item ItemInfo
}

// ItemInfo names a deploy item.
type ItemInfo struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// With adapts a function that takes the configuration for Object, Versioned, ForEach, WithData and the like, so that
// the body need not decode it:
//
//	stategraph.Object(stategraph.With(func(ctx stategraph.Context[Config]) (*corev1.Service, error) { … ctx.Config.Port … }))
//
// The adapted function returns the errors of Config, if the graph was not made by NewGraphOf[C], and those of the
// function.
func With[C, R any](f func(ctx Context[C]) (R, error)) func(ctx context.Context) (R, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (R, error) {
		var none R
		n, err := From(ctx)
		if err != nil {
			return none, err
		}
		config, ok := n.run.config.(*C)
		if !ok {
			if config, err = deployerlib.DecodeConfig[C](n.run.item); err != nil {
				return none, err
			}
		}
		return f(Context[C]{Context: ctx, Config: config, Item: infoOf(n.Item())})
	}
}

// infoOf returns the names of an item.
func infoOf(item *lsv1alpha1.DeployItem) ItemInfo {
	return ItemInfo{
		Name: item.Name, Namespace: item.Namespace, UID: string(item.UID), Labels: item.Labels, Annotations: item.Annotations,
	}
}

// configure decodes the configuration of an item if the graph knows its type. Otherwise the result is nil.
func (g *Graph) configure(item *lsv1alpha1.DeployItem) (config any, err error) {
	defer recovered(&err)
	if g.decode == nil {
		return nil, nil
	}
	return g.decode(item)
}
