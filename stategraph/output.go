// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/jsonpath"
)

// output is one result that a component leaves for those that require it.
type output struct {
	instance string
	value    any       // of SetOutput
	ref      apply.Ref // of an object

	mu   sync.Mutex
	live *unstructured.Unstructured // nil if not known yet
}

// Output returns what a required component left. This is the value of SetOutput, or its object as it is in the target
// cluster, as *unstructured.Unstructured or as a pointer to the type of its kind. Of several objects it is the one of
// that kind. The value of an object is a copy. An object that did not have to be written is read, which costs a call.
// If the name is enough, use Name. Output returns an error if the component that asks does not require the other one,
// directly or not, or if that component left nothing, several such results, or one of another type.
func Output[T any](ctx context.Context, component string) (T, error) {
	var none T
	n, outs, err := outputsOf(ctx, component)
	if err != nil {
		return none, err
	}
	fitting := fits[T](outs)
	if len(fitting) != 1 {
		return none, fmt.Errorf("component %s: %s left %d outputs that may be a %T, want one", n.component, component, len(fitting), none)
	}
	return read[T](ctx, n, component, fitting[0])
}

// Outputs is Output for a component made by ForEach. It returns what the instances left, by instance.
func Outputs[T any](ctx context.Context, component string) (map[string]T, error) {
	n, outs, err := outputsOf(ctx, component)
	if err != nil {
		return nil, err
	}
	values := map[string]T{}
	for _, out := range fits[T](outs) {
		if _, twice := values[out.instance]; twice {
			return nil, fmt.Errorf("component %s: the instance %q of %s left several outputs", n.component, out.instance, component)
		}
		if values[out.instance], err = read[T](ctx, n, component, out); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// SetOutput leaves a value for the components that require the current one; see Output. The last value counts. It lives
// as long as the run. All components share the value, so it should not be changed.
func SetOutput(ctx context.Context, value any) error {
	n, err := From(ctx)
	if err != nil {
		return err
	}
	if n.ahead {
		return nil
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	for _, out := range n.run.outputs[n.place] {
		if out.ref == (apply.Ref{}) && out.instance == n.instance {
			out.value = value
			return nil
		}
	}
	n.run.outputs[n.place] = append(n.run.outputs[n.place], &output{instance: n.instance, value: value})
	return nil
}

// Name returns the name of the only object of a required component, without a request to the cluster. It is empty if
// the component keeps no object for this item. The errors are those of Ref.
func Name(ctx context.Context, component string) (string, error) {
	n, outs, err := outputsOf(ctx, component)
	if err != nil {
		return "", err
	}
	if len(objectsOf(outs)) == 0 && n.run.graph.hasObjects(component) {
		return "", nil
	}
	ref, err := Ref(ctx, component)
	return ref.Name, err
}

// Ref returns which object a required component keeps, without a request to the cluster. It returns an error if the
// component that asks does not require the other one, directly or not, or if that component does not keep exactly one
// object.
func Ref(ctx context.Context, component string) (apply.Ref, error) {
	n, outs, err := outputsOf(ctx, component)
	if err != nil {
		return apply.Ref{}, err
	}
	kept := objectsOf(outs)
	if len(kept) != 1 {
		return apply.Ref{}, fmt.Errorf("component %s: %s keeps %d objects, want one", n.component, component, len(kept))
	}
	return kept[0].ref, nil
}

// OutputOf returns the value of an output that a required component declares with WithOutput, or nil if the component
// keeps no object for this item. It may cost a call, as Output does. It returns an error if the component is not
// required or has no such output, or if the object has no such field or several.
func OutputOf(ctx context.Context, component, output string) (any, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, err
	}
	live, err := onlyObject(ctx, component)
	if err != nil {
		return nil, err
	}
	kept := declaredBy(n.run.graph.nodes[n.run.graph.index[component]].resource)
	if kept == nil || kept.outputs[output] == nil {
		return nil, fmt.Errorf("component %s: %s has no output %q", n.component, component, output)
	}
	if live == nil {
		return nil, nil
	}
	value, err := valueAt(ctx, live, kept.outputs[output])
	if err != nil {
		return nil, fmt.Errorf("component %s: output %q of %s: %w", n.component, output, component, err)
	}
	return value, nil
}

// valueAt returns a copy of the only value that a path finds.
func valueAt(ctx context.Context, live *unstructured.Unstructured, path *jsonpath.Path) (any, error) {
	found, err := path.Find(ctx, live.Object)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s leads to %d values, want one", path, len(found))
	}
	return runtime.DeepCopyJSONValue(found[0]), nil
}

// onlyObject returns the only object of a required component as it is in the cluster, which must not be changed. It
// returns nil if the component keeps none for this item.
func onlyObject(ctx context.Context, component string) (*unstructured.Unstructured, error) {
	n, outs, err := outputsOf(ctx, component)
	if err != nil {
		return nil, err
	}
	kept := objectsOf(outs)
	if len(kept) == 0 && n.run.graph.hasObjects(component) {
		return nil, nil
	}
	if len(kept) != 1 {
		return nil, fmt.Errorf("component %s: %s keeps %d objects, want one", n.component, component, len(kept))
	}
	live, err := kept[0].object(ctx, n)
	switch {
	case err != nil:
		return nil, fmt.Errorf("component %s: read %s of %s: %w", n.component, kept[0].ref, component, err)
	case live == nil:
		return nil, fmt.Errorf("component %s: %s of %s does not exist any more", n.component, kept[0].ref, component)
	}
	return live, nil
}

// objectsOf returns the outputs that are objects.
func objectsOf(outs []*output) (kept []*output) {
	for _, out := range outs {
		if out.ref != (apply.Ref{}) {
			kept = append(kept, out)
		}
	}
	return kept
}

// outputsOf returns the outputs of a required component.
func outputsOf(ctx context.Context, component string) (*Node, []*output, error) {
	n, err := From(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := n.mayUse(component); err != nil {
		return nil, nil, err
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	place := n.run.graph.index[component]
	outs := n.run.outputs[place]
	if n.ahead && len(outs) == 0 {
		if outs = n.run.foreseen[place]; len(outs) == 0 {
			return nil, nil, errAhead
		}
	}
	return n, outs, nil
}

// leave records the objects of a component for those that require it.
func (n *Node) leave(outcomes []apply.Outcome) {
	outs := make([]*output, 0, len(outcomes))
	for i, o := range outcomes {
		outs = append(outs, &output{instance: instanceOf(n.kept.desired[i].Object), ref: o.Ref, live: o.Live})
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	n.run.outputs[n.place] = append(outs, n.run.outputs[n.place]...)
}

// fits returns the outputs that can be read as a T.
func fits[T any](outs []*output) []*output {
	objects := objectsThatFit(reflect.TypeFor[T]())
	var fitting []*output
	for _, out := range outs {
		if out.ref == (apply.Ref{}) {
			if _, ok := out.value.(T); ok {
				fitting = append(fitting, out)
			}
		} else if objects(out.ref) {
			fitting = append(fitting, out)
		}
	}
	return fitting
}

// objectsThatFit returns a function that reports which objects may be returned as a type. If the type is unstructured,
// or one that the scheme of Kubernetes does not know, all objects fit. Otherwise objects of its kind fit.
func objectsThatFit(as reflect.Type) func(apply.Ref) bool {
	if !as.Implements(reflect.TypeFor[client.Object]()) || as.Kind() != reflect.Pointer {
		return func(apply.Ref) bool { return false }
	}
	kind := kindOfType(scheme.Scheme, as)
	return func(ref apply.Ref) bool { return kind.Empty() || kind == ref.GVK() }
}

// read returns the value of an output.
func read[T any](ctx context.Context, n *Node, component string, out *output) (T, error) {
	var value T
	if out.ref == (apply.Ref{}) {
		return out.value.(T), nil
	}
	live, err := out.object(ctx, n)
	switch {
	case err != nil:
		return value, fmt.Errorf("component %s: read %s of %s: %w", n.component, out.ref, component, err)
	case live == nil:
		return value, fmt.Errorf("component %s: %s of %s does not exist any more", n.component, out.ref, component)
	}
	if value, err = decode[T](live); err != nil {
		return value, fmt.Errorf("component %s: output of %s: %w", n.component, component, err)
	}
	return value, nil
}

// object returns the object in the cluster, which is read at most once per run.
func (o *output) object(ctx context.Context, n *Node) (*unstructured.Unstructured, error) {
	if n.ahead {
		return nil, errAhead
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		live, err := n.run.session.Get(ctx, o.ref)
		if err != nil {
			return nil, err
		}
		o.live = live
	}
	return o.live, nil
}
