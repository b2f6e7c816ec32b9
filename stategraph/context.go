// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
)

// ErrNoRun is returned by functions such as Item and Output if their context was not passed to a component by a run.
var ErrNoRun = errors.New("the context does not belong to a component of a running state graph")

// nodeRun is a component in one run for one deploy item.
type nodeRun struct {
	run       *run
	place     int // the index of the component in the graph
	component string
	*element                   // the instance of a ForEach; nil for other components
	prepared  *preparedObjects // the objects of the component; nil until Prepare has returned them
	namesOnly bool             // only the names of the objects are needed; required components may not be ready yet
	isExport  bool             // an export is evaluated, which may use the outputs of its own component
}

// element contains an element of the list of a ForEach, and the name of the instance for this element.
type element struct {
	instance string
	value    any
}

// preparedObjects contains the objects of a component in one run.
type preparedObjects struct {
	desired  []apply.Desired
	err      error // the errors of instances of a ForEach, whose objects are not in the field `desired`
	outcomes []apply.ApplyResult
}

type nodeKey struct{}

// nodeContext is the context that is passed to the methods of a node during a visit. A run allocates the contexts of
// all nodes at once, so that a visit allocates nothing.
type nodeContext struct {
	context.Context //nolint:containedctx // the type is a context

	node *nodeRun
}

// Value returns the node if key is nodeKey.
func (c *nodeContext) Value(key any) any {
	if key == (nodeKey{}) {
		return c.node
	}
	return c.Context.Value(key)
}

// getNodeRun returns the component for which ctx was created. It returns ErrNoRun if ctx is not derived from a context
// that a run passed to a Resource.
func getNodeRun(ctx context.Context) (*nodeRun, error) {
	if n, ok := ctx.Value(nodeKey{}).(*nodeRun); ok {
		return n, nil
	}
	return nil, ErrNoRun
}

// newContext returns a context that is passed to the methods of the component.
func (n *nodeRun) newContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, nodeKey{}, n)
}

// instanceName returns the name of the instance of ForEach, or "" if there is none.
func (n *nodeRun) instanceName() string {
	if n.element == nil {
		return ""
	}
	return n.instance
}

// errRequirementNotReady is returned by functions such as Output and Client while only the names of objects are needed
// and the required components are not ready yet.
var errRequirementNotReady = errors.New("a required component is not ready")

// Component returns the name of the current component. Outside of a run it returns "".
func Component(ctx context.Context) string {
	if n, err := getNodeRun(ctx); err == nil {
		return n.component
	}
	return ""
}

// Item returns a copy of the deploy item, as it was at the start of the run. Changes to the copy have no effect.
func Item(ctx context.Context) (*lsv1alpha1.DeployItem, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return nil, err
	}
	return n.run.item.DeepCopy(), nil
}

// Config decodes spec.config of the deploy item like deployerlib.DecodeConfig, which rejects unknown fields. Each call
// returns a new value, so that a component cannot change the configuration of another one.
func Config[T any](ctx context.Context) (*T, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return nil, err
	}
	return deployerlib.DecodeConfig[T](n.run.item)
}

// Client returns a client of the target cluster. The inventory does not list objects that this client creates, so they
// are not deleted with the item. Use Object or Template for objects that should be deleted with the item. Client
// returns an error if the deploy item has no target.
func Client(ctx context.Context) (client.Client, error) {
	n, err := getNodeRun(ctx)
	switch {
	case err != nil:
		return nil, err
	case n.namesOnly:
		return nil, errRequirementNotReady
	case n.run.target == nil:
		return nil, fmt.Errorf("component %s needs a target cluster, but the deploy item has no target", n.component)
	}
	return n.run.target, nil
}

// Log returns a logger with the names of the item and the component. Outside of a run, it returns the logger in the
// context. If there is none, the returned logger writes nothing.
func Log(ctx context.Context) logr.Logger {
	n, err := getNodeRun(ctx)
	switch {
	case err != nil:
		return logr.FromContextOrDiscard(ctx)
	case n.element != nil:
		return n.run.log.WithValues("component", n.component, "instance", n.instance)
	}
	return n.run.log.WithValues("component", n.component)
}

// Instance returns the name of the current instance of ForEach. Outside of ForEach it returns "".
func Instance(ctx context.Context) string {
	if n, err := getNodeRun(ctx); err == nil {
		return n.instanceName()
	}
	return ""
}

// Element returns the element of the current instance of ForEach. It returns an error if there is no such instance, or
// if the element has another type.
func Element[E any](ctx context.Context) (E, error) {
	var none E
	n, err := getNodeRun(ctx)
	if err != nil {
		return none, err
	}
	if n.element == nil {
		return none, fmt.Errorf("component %s has no elements, because it was not created by ForEach", n.component)
	}
	if value, ok := n.value.(E); ok {
		return value, nil
	}
	return none, fmt.Errorf("component %s: the element is a %T, not a %T", n.component, n.value, none)
}

// checkRequirement returns an error unless the component requires the given component, directly or indirectly. Without
// this requirement, the given component might not be ready.
func (n *nodeRun) checkRequirement(component string) error {
	place, found := n.run.graph.index[component]
	switch {
	case n.isExport && component == n.component:
		return nil
	case component == n.component:
		return fmt.Errorf("component %s uses its own output", n.component)
	case !found:
		return fmt.Errorf("component %s uses the output of %q, which is not a component%s", n.component, component,
			n.run.graph.suggest(component))
	case !slices.Contains(n.run.graph.ancestors[n.place], place):
		return fmt.Errorf("component %s uses the output of %s, but does not require it", n.component, component)
	}
	return nil
}

// NewBuilderOf returns an empty builder for items whose spec.config is of type C. Each run decodes the configuration
// once, in the same way as Config, and validates it with the given functions. If the configuration is invalid, the run
// fails before it visits a component. An error of deployerlib.NewConfigError, which decoding returns and the validate
// functions should return, ends the item's Landscaper job at once. After other errors, the run is repeated. Functions
// that return objects get the configuration from WithConfig or Config. A deletion does not decode the configuration.
func NewBuilderOf[C any](validate ...func(*C) error) *Builder {
	b := NewBuilder()
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

// Context is a context.Context together with the configuration of the item. See With.
type Context[C any] struct {
	context.Context

	// Config is the decoded spec.config of the item. All components share it during a run, so they must not change it.
	Config *C
	// Item identifies the item.
	Item ItemInfo
}

// ItemInfo contains metadata of a deploy item, for functions that return objects and for templates.
type ItemInfo struct {
	Name, Namespace, UID string
	Labels, Annotations  map[string]string
}

// WithConfig adapts f for Object, Versioned, ForEach and WithData. The returned function calls f with the decoded
// configuration:
//
//	stategraph.Object(stategraph.WithConfig(func(ctx stategraph.Context[Config]) (*corev1.Service, error) { … ctx.Config.Port … }))
//
// If the graph was not built with NewBuilderOf[C], the returned function decodes the configuration in each call, and
// returns the same errors as Config.
func WithConfig[C, R any](f func(ctx Context[C]) (R, error)) func(ctx context.Context) (R, error) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context) (R, error) {
		var none R
		n, err := getNodeRun(ctx)
		if err != nil {
			return none, err
		}
		config, ok := n.run.config.(*C)
		if !ok {
			if config, err = deployerlib.DecodeConfig[C](n.run.item); err != nil {
				return none, err
			}
		}
		return f(Context[C]{Context: ctx, Config: config, Item: newItemInfo(n.run.item)})
	}
}

// newItemInfo returns the metadata of an item. The maps are copies.
func newItemInfo(item *lsv1alpha1.DeployItem) ItemInfo {
	return ItemInfo{
		Name: item.Name, Namespace: item.Namespace, UID: string(item.UID),
		Labels: maps.Clone(item.Labels), Annotations: maps.Clone(item.Annotations),
	}
}

// decodeConfig decodes the configuration of an item. It returns nil if the graph was not built with NewBuilderOf.
func (g *Graph) decodeConfig(item *lsv1alpha1.DeployItem) (config any, err error) {
	defer recoverPanic(&err)
	if g.decode == nil {
		return nil, nil
	}
	return g.decode(item)
}
