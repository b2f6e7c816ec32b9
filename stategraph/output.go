// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/jsonpath"
	"github.com/deployerkit/deployerkit/apply/readiness"
)

// output is a result that a component provides to the components that require it. It is either a value or an object.
type output struct {
	instance string
	value    any       // the argument of SetOutput
	ref      apply.Ref // a reference to the object; zero if the output is a value

	mu   sync.Mutex
	live *unstructured.Unstructured // the object in the cluster, or nil if it was not read yet
}

// Output returns a result of a required component. The result is the value that the component passed to SetOutput, or a
// copy of an object of the component as it is in the target cluster. If you want an object, T must be
// *unstructured.Unstructured or a pointer to a Go type. If the component has several objects, Output returns the object
// whose kind matches T. Reading the object may cause a request. If you only need the name, use Name. Output returns an
// error if the current component does not require the given component, directly or indirectly. It also returns an error
// if the given component does not have exactly one result of type T.
func Output[T any](ctx context.Context, component string) (T, error) {
	var none T
	n, outs, err := getOutputs(ctx, component)
	if err != nil {
		return none, err
	}
	fitting := filterOutputs[T](outs)
	if len(fitting) != 1 {
		return none, fmt.Errorf("component %s: %s has %d outputs of type %T, want one", n.component, component, len(fitting), none)
	}
	return readOutput[T](ctx, n, component, fitting[0])
}

// Outputs returns the results of a required component with several instances, such as a ForEach. The keys are the names
// of the instances. Outputs returns the same errors as Output, except that it omits instances without a result.
func Outputs[T any](ctx context.Context, component string) (map[string]T, error) {
	n, outs, err := getOutputs(ctx, component)
	if err != nil {
		return nil, err
	}
	values := map[string]T{}
	for _, out := range filterOutputs[T](outs) {
		if _, twice := values[out.instance]; twice {
			return nil, fmt.Errorf("component %s: the instance %q of %s has several outputs", n.component, out.instance, component)
		}
		if values[out.instance], err = readOutput[T](ctx, n, component, out); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// SetOutput sets the value that Output returns to components that require the current component. If SetOutput is called
// several times in a run, the last call counts. The value is discarded at the end of the run. The library does not copy
// the value, so it must not be modified afterwards.
func SetOutput(ctx context.Context, value any) error {
	n, err := getNodeRun(ctx)
	if err != nil {
		return err
	}
	if n.namesOnly {
		return nil
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	for _, out := range n.run.outputs[n.place] {
		if out.ref == (apply.Ref{}) && out.instance == n.instanceName() {
			out.value = value
			return nil
		}
	}
	n.run.outputs[n.place] = append(n.run.outputs[n.place], &output{instance: n.instanceName(), value: value})
	return nil
}

// Name returns the name of the only object of a required component, without a request. It returns "" if the component
// has no object for this item. It returns an error if the current component does not require the given component,
// directly or indirectly, or if the given component has several objects.
func Name(ctx context.Context, component string) (string, error) {
	_, out, err := onlyOutput(ctx, component)
	if out == nil {
		return "", err
	}
	return out.ref.Name, nil
}

// Ref returns a reference to the only object of a required component, without a request. It returns an error if the
// current component does not require the given component, directly or indirectly, or if the given component does not
// have exactly one object.
func Ref(ctx context.Context, component string) (apply.Ref, error) {
	n, out, err := onlyOutput(ctx, component)
	switch {
	case err != nil:
		return apply.Ref{}, err
	case out == nil:
		return apply.Ref{}, fmt.Errorf("component %s: %s has 0 objects, want one", n.component, component)
	}
	return out.ref, nil
}

// readDeclaredOutput returns the value of an output that a required component declares with WithOutput. It returns nil
// if the component has no object for this item. It returns an error if the current component does not require the given
// component, if the given component does not declare the output, or if the path does not find exactly one value.
func readDeclaredOutput(ctx context.Context, component, output string) (any, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return nil, err
	}
	live, err := onlyObject(ctx, component)
	if err != nil {
		return nil, err
	}
	kept := asObjectsResource(n.run.graph.nodes[n.run.graph.index[component]].resource)
	switch {
	case kept == nil || kept.outputs[output] == nil:
		return nil, fmt.Errorf("component %s: %s has no output %q", n.component, component, output)
	case live == nil:
		return nil, nil
	}
	value, err := findValue(ctx, live, kept.outputs[output])
	if err != nil {
		return nil, fmt.Errorf("component %s: output %q of %s: %w", n.component, output, component, err)
	}
	return value, nil
}

// findValue returns a copy of the only value that a path finds in an object.
func findValue(ctx context.Context, live *unstructured.Unstructured, path *jsonpath.Path) (any, error) {
	found, err := path.Find(ctx, live.Object)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s leads to %d values, want one", path, len(found))
	}
	return runtime.DeepCopyJSONValue(found[0]), nil
}

// onlyOutput returns the output that contains the only object of a required component. It returns nil if the component
// has no object for this item.
func onlyOutput(ctx context.Context, component string) (*nodeRun, *output, error) {
	n, outs, err := getOutputs(ctx, component)
	if err != nil {
		return nil, nil, err
	}
	outs = slices.DeleteFunc(slices.Clone(outs), func(out *output) bool { return out.ref == (apply.Ref{}) })
	switch {
	case len(outs) == 1:
		return n, outs[0], nil
	case len(outs) == 0 && n.run.graph.hasObjects(component):
		return n, nil, nil
	}
	return nil, nil, fmt.Errorf("component %s: %s has %d objects, want one", n.component, component, len(outs))
}

// onlyObject returns the only object of a required component as it is in the cluster, or nil if the component has no
// object for this item. The caller must not modify the object.
func onlyObject(ctx context.Context, component string) (*unstructured.Unstructured, error) {
	n, out, err := onlyOutput(ctx, component)
	if out == nil {
		return nil, err
	}
	return out.object(ctx, n, component)
}

// getOutputs returns the outputs of a required component.
func getOutputs(ctx context.Context, component string) (*nodeRun, []*output, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := n.checkRequirement(component); err != nil {
		return nil, nil, err
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	place := n.run.graph.index[component]
	outs := n.run.outputs[place]
	if n.namesOnly && len(outs) == 0 {
		if outs = n.run.expectedOutputs[place]; len(outs) == 0 {
			return nil, nil, errRequirementNotReady
		}
	}
	return n, outs, nil
}

// addAppliedOutputs stores the applied objects of a component as the outputs of the component.
func (n *nodeRun) addAppliedOutputs(outcomes []apply.ApplyResult) {
	outs := make([]*output, 0, len(outcomes))
	for i, o := range outcomes {
		outs = append(outs, &output{instance: getInstance(n.prepared.desired[i].Object), ref: o.Ref, live: o.Live})
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	n.run.outputs[n.place] = append(outs, n.run.outputs[n.place]...)
}

// filterOutputs returns those outputs that can be returned as a T.
func filterOutputs[T any](outs []*output) []*output {
	objects := newRefMatcher(reflect.TypeFor[T]())
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

// newRefMatcher returns a function that reports whether an object can be returned as the given type. If the type is
// *unstructured.Unstructured, or another type that is not in the scheme of Kubernetes, every object can be returned.
// Otherwise, only objects of the kind that belongs to the type can be returned.
func newRefMatcher(as reflect.Type) func(apply.Ref) bool {
	if !as.Implements(reflect.TypeFor[client.Object]()) || as.Kind() != reflect.Pointer {
		return func(apply.Ref) bool { return false }
	}
	kind := kindOfType(scheme.Scheme, as)
	return func(ref apply.Ref) bool { return kind.Empty() || kind == ref.GVK() }
}

// readOutput returns the value or the object of an output.
func readOutput[T any](ctx context.Context, n *nodeRun, component string, out *output) (T, error) {
	var value T
	if out.ref == (apply.Ref{}) {
		return out.value.(T), nil
	}
	live, err := out.object(ctx, n, component)
	if err != nil {
		return value, err
	}
	if value, err = decode[T](live); err != nil {
		return value, fmt.Errorf("component %s: output of %s: %w", n.component, component, err)
	}
	return value, nil
}

// object returns the object as it is in the cluster. The object is read at most once per run.
func (o *output) object(ctx context.Context, n *nodeRun, component string) (*unstructured.Unstructured, error) {
	if n.namesOnly {
		return nil, errRequirementNotReady
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.live == nil {
		live, err := n.run.session.Get(ctx, o.ref)
		switch {
		case errors.Is(err, readiness.ErrFinished):
			return nil, fmt.Errorf("component %s: %s of %s %w", n.component, o.ref, component, err)
		case err != nil:
			return nil, fmt.Errorf("component %s: read %s of %s: %w", n.component, o.ref, component, err)
		case live == nil:
			return nil, fmt.Errorf("component %s: %s of %s does not exist any more", n.component, o.ref, component)
		}
		o.live = live
	}
	return o.live, nil
}
