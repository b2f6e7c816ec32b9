// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// maxInstances is the maximum number of instances of one ForEach for one item.
const maxInstances = 1000

// ForEach manages the objects of the resource `each` once for each element of a list. Each element has one instance,
// and all instances belong to one component. The function `elements` returns the list. The function `name` returns the
// name of the instance for an element. The name must be different for each element, and the same in each run. The
// resource `each` is an Object, Template or Versioned. Its functions get the element from Element, and the name of the
// instance from Instance. The objects have the name of the instance in the label LabelInstance. Object names that the
// library computes also depend on the instance.
//
// The component is ready when all instances are ready. When an element is no longer in the list, the objects of its
// instance are deleted. The instances are independent: if an instance has an error, the component fails with an error
// that names the instance, the objects that the instance already has stay, and the other instances are applied.
// Elements with the same name have an error. The component fails as a whole if `elements` returns an error, or if there
// are more than 1000 elements.
func ForEach[E any](elements func(ctx context.Context) ([]E, error), name func(E) string, each Resource) Resource {
	inner, ok := each.(*objectsResource)
	if !ok || inner == nil {
		return &objectsResource{options: newOptions(nil), faults: []string{"the parameter each of ForEach must be an Object, a Template or a Versioned"}}
	}
	r := *inner
	if elements == nil || name == nil {
		r.faults = append(slices.Clip(r.faults), "the parameters elements and name of ForEach must not be nil")
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		n, err := getNodeRun(ctx)
		if err != nil {
			return nil, err
		}
		instances, faults, err := listInstances(ctx, n, elements, name)
		if err != nil {
			return nil, err
		}
		var all []*unstructured.Unstructured
		for _, instance := range instances {
			rendered, err := instance.renderInstance(ctx, inner)
			if err != nil {
				faults = append(faults, fmt.Errorf("instance %q: %w", instance.instance, err))
				continue
			}
			all = append(all, rendered...)
		}
		return all, newInstanceErrors(faults)
	}
	return &r
}

// instanceErrors is the error of some instances of a ForEach. The objects of the other instances are valid.
type instanceErrors struct{ error }

func (f *instanceErrors) Unwrap() error { return f.error }

// newInstanceErrors joins the errors of instances. It returns nil if there are none.
func newInstanceErrors(faults []error) error {
	if len(faults) == 0 {
		return nil
	}
	return &instanceErrors{errors.Join(faults...)}
}

// splitInstanceErrors returns err as the error of some instances, or as an error that concerns all objects.
func splitInstanceErrors(err error) (faults, whole error) {
	if some, ok := err.(*instanceErrors); ok { //nolint:errorlint // a wrapped error concerns all objects
		return some, nil
	}
	return nil, err
}

// listInstances returns a node for each element. The result `faults` contains the errors of elements that have no node.
func listInstances[E any](ctx context.Context, n *nodeRun, elements func(ctx context.Context) ([]E, error), name func(E) string) (instances []*nodeRun, faults []error, err error) {
	if n.element != nil {
		return nil, nil, errors.New("a ForEach must not contain another ForEach")
	}
	list, err := elements(ctx)
	if err != nil {
		return nil, nil, err
	}
	if len(list) > maxInstances {
		return nil, nil, fmt.Errorf("%d instances, at most %d are allowed", len(list), maxInstances)
	}
	names, count := make([]string, len(list)), make(map[string]int, len(list))
	for i, value := range list {
		names[i] = name(value)
		count[names[i]]++
	}
	for i, value := range list {
		instance := names[i]
		switch {
		case count[instance] < 0: // reported already
		case instance == "":
			faults, count[instance] = append(faults, errors.New("the name of an element is empty")), -1
		case count[instance] > 1:
			faults, count[instance] = append(faults, fmt.Errorf("two elements have the name %q", instance)), -1
		default:
			instances = append(instances, &nodeRun{run: n.run, place: n.place, component: n.component, element: &element{instance, value}, namesOnly: n.namesOnly})
		}
	}
	return instances, faults, nil
}

// withoutInstances returns the objects that do not belong to one of the given instances.
func withoutInstances(desired []apply.Desired, instances map[string]bool) []apply.Desired {
	return slices.DeleteFunc(slices.Clone(desired), func(d apply.Desired) bool { return instances[getInstance(d.Object)] })
}

// groupErrorsByInstance assigns the errors of objects to the instances that the objects belong to. The result `whole`
// is err if one of the errors does not belong to an instance.
func groupErrorsByInstance(desired []apply.Desired, err error) (faulty map[string]bool, faults []error, whole error) {
	named := map[apply.Ref]string{}
	for _, d := range desired {
		named[target.WithoutVersion(apply.ToRef(d.Object))] = getInstance(d.Object)
	}
	all, _ := errors.AsType[apply.Errors](err)
	if one, ok := errors.AsType[*apply.Error](err); ok && len(all) == 0 {
		all = apply.Errors{one}
	}
	faulty = map[string]bool{}
	for _, one := range all {
		instance := named[target.WithoutVersion(one.Ref)]
		if instance == "" {
			return nil, nil, err
		}
		faulty[instance] = true
		faults = append(faults, fmt.Errorf("instance %q: %w", instance, one))
	}
	if len(faults) == 0 {
		return nil, nil, err
	}
	return faulty, faults, nil
}

// renderInstance returns the objects of one instance, with labels and names.
func (n *nodeRun) renderInstance(ctx context.Context, of *objectsResource) (out []*unstructured.Unstructured, err error) {
	defer recoverPanic(&err)
	rendered, err := of.Prepare(n.newContext(ctx))
	if err != nil {
		return nil, err
	}
	marked, err := n.addIdentities(rendered)
	if err != nil {
		return nil, err
	}
	out = make([]*unstructured.Unstructured, len(marked))
	for i := range marked {
		out[i] = marked[i].Object
	}
	return out, nil
}
