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

// Required is a component that another one uses and that keeps a T. The body of the other component uses Get and Name
// of it. The option Uses makes it a requirement, so that the two cannot differ.
//
//	var service = stategraph.Require[*corev1.Service]("service")
//
//	stategraph.Object(body, stategraph.Uses(service)) // in the body: service.Name(ctx), service.Get(ctx)
type Required[T client.Object] struct{ component string }

// Require returns a typed reference to a component.
func Require[T client.Object](component string) Required[T] { return Required[T]{component: component} }

// Get calls Output for the component.
func (r Required[T]) Get(ctx context.Context) (T, error) { return Output[T](ctx, r.component) }

// Name calls Name for the component.
func (r Required[T]) Name(ctx context.Context) (string, error) { return Name(ctx, r.component) }

// Ref calls Ref for the component.
func (r Required[T]) Ref(ctx context.Context) (apply.Ref, error) { return Ref(ctx, r.component) }

func (r Required[T]) required() (component string, kind schema.GroupVersionKind) {
	return r.component, kindOfType(scheme.Scheme, reflect.TypeFor[T]())
}

// Requirement is a Required of any type.
type Requirement interface {
	required() (component string, kind schema.GroupVersionKind)
}

// Uses makes the component require the components that its Go functions use. Build returns an error if such a component
// does not exist, or keeps nothing of the type.
func Uses(required ...Requirement) Option {
	return func(o *options) { o.required = append(o.required, required...) }
}

// Optional means that the component keeps no object for some items. A template that uses it must handle that with "if",
// "with" or "default". Templates whose objects are all within conditions are optional by themselves.
func Optional() Option { return func(o *options) { o.optional = true } }

// WithOutput declares an output, which is the value of a field of the component's only object, as a JSON path such as
// ".status.loadBalancer.ingress[0].ip". Templates read it with {{ .Output "component" "name" }}, and Builder.Export
// exports it.
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

// use is a place in which a component uses another one.
type use struct {
	template.Use

	kind schema.GroupVersionKind // that the other one must keep, or empty for any
}

// infer adds what components use to what they require, and returns the faults.
func (g *Graph) infer() []error {
	var faults []error
	for place := range g.nodes {
		node := &g.nodes[place]
		kept := declaredBy(node.resource)
		if kept == nil {
			continue
		}
		for _, u := range kept.allUses() {
			required, err := g.checkUse(place, u)
			if err != nil {
				faults = append(faults, fmt.Errorf("component %q: %w", node.component, err))
			} else if !graph.Reaches(g.requires(), place, required) {
				node.requires = append(node.requires, required)
			}
		}
		slices.Sort(node.requires)
	}
	return faults
}

// checkUse finds the component that another one uses.
func (g *Graph) checkUse(place int, u use) (required int, err error) {
	required, found := g.index[u.Component]
	switch {
	case !found:
		return 0, fmt.Errorf("%s: there is no component %q%s", u.Where, u.Component, graph.Suggest(u.Component, slices.Sorted(maps.Keys(g.index))))
	case required == place:
		return 0, fmt.Errorf("%s: a component cannot use itself", u.Where)
	}
	kept := declaredBy(g.nodes[required].resource)
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
	case !u.kind.Empty() && len(kept.kinds) > 0 && !slices.Contains(kept.kinds, u.kind):
		return 0, fmt.Errorf("%s: the component %q keeps no %s", u.Where, u.Component, u.kind.Kind)
	case kept.optional && !u.Guarded:
		return 0, fmt.Errorf("%s: the component %q keeps no object for some items; put it within \"if\" or \"with\", or use \"default\"", u.Where, u.Component)
	}
	return required, nil
}

// allUses returns the components that the resource names in its template, and with Uses.
func (o *objects) allUses() []use {
	out := make([]use, 0, len(o.uses)+len(o.required))
	for _, u := range o.uses {
		out = append(out, use{Use: u})
	}
	for _, r := range o.required {
		if r == nil {
			continue
		}
		component, kind := r.required()
		out = append(out, use{Use: template.Use{Component: component, Where: "Uses", Guarded: true}, kind: kind})
	}
	return out
}
