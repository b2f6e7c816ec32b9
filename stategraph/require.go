// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/stategraph/internal/graph"
	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// Required is a reference to a component whose object is a T. A component that reads the object calls the methods of
// Required in its functions, and declares the requirement with the option Uses.
//
//	var service = stategraph.Require[*corev1.Service]("service")
//
//	stategraph.Object(body, stategraph.Uses(service)) // in the body: service.Name(ctx), service.Get(ctx)
type Required[T client.Object] struct{ component string }

// Require returns a reference to a component.
func Require[T client.Object](component string) Required[T] { return Required[T]{component: component} }

// Get returns the object of the component. See the function Output.
func (r Required[T]) Get(ctx context.Context) (T, error) { return Output[T](ctx, r.component) }

// Name returns the name of the object of the component. See the function Name.
func (r Required[T]) Name(ctx context.Context) (string, error) { return Name(ctx, r.component) }

// Ref returns a reference to the object of the component. See the function Ref.
func (r Required[T]) Ref(ctx context.Context) (apply.Ref, error) { return Ref(ctx, r.component) }

func (r Required[T]) required() (component string, kind schema.GroupVersionKind) {
	return r.component, kindOfType(scheme.Scheme, reflect.TypeFor[T]())
}

// Requirement is implemented by Required[T] for each T.
type Requirement interface {
	required() (component string, kind schema.GroupVersionKind)
}

// Uses adds requirements to a component. Use it if a Go function of the component reads results of other components.
// Build returns an error if one of these components does not exist, or if its objects are of another type.
func Uses(required ...Requirement) Option {
	return func(o *options) {
		o.required = append(o.required, slices.DeleteFunc(slices.Clone(required), func(r Requirement) bool { return r == nil })...)
	}
}

// Optional declares that the component may have no object for some items. A template that uses the component must
// handle this case with "if", "with" or "default". A Template is optional without this option if its whole text is
// inside conditions.
func Optional() Option { return func(o *options) { o.optional = true } }

// WithOutput declares an output. The value of the output is a field of the only object of the component, at a JSON path
// such as ".status.loadBalancer.ingress[0].ip". Builder.AddExport can export the output. A template of another
// component reads the output with {{ .Output "component" "name" }}.
func WithOutput(name, path string) Option {
	return func(o *options) {
		parsed, err := jsonpath.Parse(path)
		_, twice := o.outputs[name]
		switch {
		case err != nil:
			o.faults = append(o.faults, fmt.Sprintf("output %q: %v", name, err))
		case name == "" || twice:
			o.faults = append(o.faults, fmt.Sprintf("output %q: the name is empty or used twice", name))
		}
		if o.outputs == nil {
			o.outputs = map[string]*jsonpath.Path{}
		}
		o.outputs[name] = parsed
	}
}

// addInferredRequirements makes each component require the components that it uses in its
// template or with the option Uses. It returns an error for each use that is not valid.
func (g *Graph) addInferredRequirements() []error {
	var faults []error
	for place := range g.nodes {
		node := &g.nodes[place]
		add := func(u template.Use, kind schema.GroupVersionKind) {
			required, err := g.checkUse(place, u, kind)
			if err != nil {
				faults = append(faults, fmt.Errorf("component %q: %w", node.component, err))
			} else if !graph.IsRequired(g.listRequirements(), place, required) {
				node.requires = append(node.requires, required)
			}
		}
		kept := asObjectsResource(node.resource)
		if kept == nil {
			continue
		}
		for _, u := range kept.uses {
			add(u, schema.GroupVersionKind{})
		}
		for _, r := range kept.required {
			component, kind := r.required()
			add(template.Use{Component: component, Where: "Uses", Guarded: true}, kind)
		}
		slices.Sort(node.requires)
	}
	return faults
}

// checkUse returns the index of the component u.Component. It returns an error if the use is not valid. The component
// with the index place contains the use. If kind is not empty, the used component must be able to have an object of
// that kind.
func (g *Graph) checkUse(place int, u template.Use, kind schema.GroupVersionKind) (required int, err error) {
	required, found := g.index[u.Component]
	switch {
	case !found:
		return 0, fmt.Errorf("%s: there is no component %q%s", u.Where, u.Component, g.suggest(u.Component))
	case required == place:
		return 0, fmt.Errorf("%s: a component cannot use itself", u.Where)
	}
	kept := asObjectsResource(g.nodes[required].resource)
	if kept == nil {
		if u.Output != "" {
			err = fmt.Errorf("%s: the component %q has no output %q", u.Where, u.Component, u.Output)
		}
		return required, err
	}
	switch {
	case u.Output != "" && kept.outputs[u.Output] == nil:
		return 0, fmt.Errorf("%s: the component %q has no output %q%s", u.Where, u.Component, u.Output,
			graph.Suggest(u.Output, slices.Sorted(maps.Keys(kept.outputs))))
	case !kind.Empty() && len(kept.kinds) > 0 && !slices.Contains(kept.kinds, kind):
		return 0, fmt.Errorf("%s: the component %q has no %s", u.Where, u.Component, kind.Kind)
	case kept.optional && !u.Guarded:
		return 0, fmt.Errorf("%s: the component %q has no object for some items; put the use inside of \"if\" or \"with\", or add \"default\"", u.Where, u.Component)
	}
	return required, nil
}
