// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaxInstances is the maximum number of instances of one ForEach for one item.
const MaxInstances = 1000

// ForEach manages the objects of the resource `each` once for each element of a list. Each element has one instance,
// and all instances belong to one component. The function `elements` returns the list. The function `name` returns the
// name of the instance for an element. The name must be different for each element, and the same in each run. The
// resource `each` is an Object, Template or Versioned. Its functions get the element from Element, and the name of the
// instance from Instance. The objects have the name of the instance in the label LabelInstance. Object names that the
// library computes also depend on the instance.
//
// The component is ready when all instances are ready. When an element is no longer in the list, the objects of its
// instance are deleted. The component fails if `elements` returns an error, if two elements have the same name, or if
// there are more than MaxInstances elements.
func ForEach[E any](elements func(ctx context.Context) ([]E, error), name func(E) string, each Resource) Resource {
	inner, ok := each.(*objects)
	if !ok || inner == nil {
		return &objects{options: optionsOf(nil), faults: []string{"the parameter each of ForEach must be an Object, a Template or a Versioned"}}
	}
	r := *inner
	if elements == nil || name == nil {
		r.faults = append(slices.Clip(r.faults), "the parameters elements and name of ForEach must not be nil")
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		n, err := nodeOf(ctx)
		if err != nil {
			return nil, err
		}
		instances, err := instancesOf(ctx, n, elements, name)
		if err != nil {
			return nil, err
		}
		var all []*unstructured.Unstructured
		for _, instance := range instances {
			rendered, err := instance.render(ctx, inner)
			if err != nil {
				return nil, fmt.Errorf("instance %q: %w", instance.instance, err)
			}
			all = append(all, rendered...)
		}
		return all, nil
	}
	return &r
}

// instancesOf returns a node for each element.
func instancesOf[E any](ctx context.Context, n *nodeRun, elements func(ctx context.Context) ([]E, error), name func(E) string) ([]*nodeRun, error) {
	if n.element != nil {
		return nil, errors.New("a ForEach must not contain another ForEach")
	}
	list, err := elements(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) > MaxInstances {
		return nil, fmt.Errorf("%d instances, at most %d are allowed", len(list), MaxInstances)
	}
	seen := make(map[string]bool, len(list))
	instances := make([]*nodeRun, 0, len(list))
	for _, value := range list {
		instance := name(value)
		switch {
		case instance == "":
			return nil, errors.New("the name of an element is empty")
		case seen[instance]:
			return nil, fmt.Errorf("two elements have the name %q", instance)
		}
		seen[instance] = true
		instances = append(instances, &nodeRun{run: n.run, place: n.place, component: n.component, element: &element{instance, value}, ahead: n.ahead})
	}
	return instances, nil
}

// render returns the objects of one instance, with labels and names.
func (n *nodeRun) render(ctx context.Context, of *objects) ([]*unstructured.Unstructured, error) {
	rendered, err := of.Prepare(n.with(ctx))
	if err != nil {
		return nil, err
	}
	marked, err := n.identify(rendered)
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, len(marked))
	for i := range marked {
		out[i] = marked[i].Object
	}
	return out, nil
}
