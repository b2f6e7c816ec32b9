// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// MaxInstances is the largest number of instances that a component made by ForEach may have for one item.
const MaxInstances = 1000

// ForEach keeps the objects of each once per element, as instances of one component. elements returns the elements.
// name distinguishes the instances, and must be the same for the same element in each run. each is an Object, Template
// or Versioned, whose functions get the element from Element and the name from Instance. Objects carry the name in the
// label LabelInstance, and in their own name if they have none.
//
// The component is ready when all instances are. Instances whose element is gone are deleted. The component fails with
// an error of elements, if two elements have the same name, or if there are more than MaxInstances.
func ForEach[E any](elements func(ctx context.Context) ([]E, error), name func(E) string, each Resource) Resource {
	inner, ok := each.(*objects)
	if !ok || inner == nil {
		return &objects{options: optionsOf(nil), faults: []string{"each of ForEach must be an Object, a Template or a Versioned"}}
	}
	r := *inner
	if elements == nil || name == nil {
		r.faults = append(slices.Clip(r.faults), "ForEach needs elements and their names")
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		n, err := From(ctx)
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

// instancesOf makes a node for each element.
func instancesOf[E any](ctx context.Context, n *Node, elements func(ctx context.Context) ([]E, error), name func(E) string) ([]*Node, error) {
	if n.instance != "" {
		return nil, fmt.Errorf("a ForEach within a ForEach is not possible")
	}
	list, err := elements(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) > MaxInstances {
		return nil, fmt.Errorf("%d instances, at most %d are allowed", len(list), MaxInstances)
	}
	seen := make(map[string]bool, len(list))
	instances := make([]*Node, 0, len(list))
	for _, element := range list {
		instance := name(element)
		switch {
		case instance == "":
			return nil, fmt.Errorf("an element has an empty name")
		case seen[instance]:
			return nil, fmt.Errorf("two elements have the name %q", instance)
		}
		seen[instance] = true
		instances = append(instances, &Node{run: n.run, place: n.place, component: n.component, instance: instance, element: element, ahead: n.ahead})
	}
	return instances, nil
}

// render returns the objects of one instance, with its label and names.
func (n *Node) render(ctx context.Context, of *objects) ([]*unstructured.Unstructured, error) {
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
