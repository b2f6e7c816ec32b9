// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
)

// ReferenceSpec configures a Reference. Exactly one of Name and Selector must be set.
type ReferenceSpec struct {
	// Kind is the kind of the objects. It is required.
	Kind schema.GroupVersionKind
	// Name returns the name of one object, and its namespace if the kind is namespaced.
	Name func(ctx context.Context) (types.NamespacedName, error)
	// Selector selects objects by their labels. At least one such object must exist, unless the component is Optional.
	Selector func(ctx context.Context) (Selection, error)
	// Landscaper is true if the objects are not in the target cluster, but in the cluster and namespace of the deploy
	// item. The namespace that Name or Selector returns is then ignored. The deployer needs the rights to get, list and
	// watch the objects.
	Landscaper bool
}

// Selection selects objects by their labels.
type Selection struct {
	// Namespace is the namespace of the objects. Empty means all namespaces.
	Namespace string
	// Labels are the labels that each object must have. At least one label is required.
	Labels map[string]string
}

// Reference refers to objects that other clients create. The objects are watched and never written. The component is
// ready when the objects exist and are ready. The rules of package apply/readiness determine whether an object is
// ready, unless an option sets another rule. A change of an object triggers another run. Components that require this
// component get the objects from Name, Output and Outputs. In Outputs, the name of an instance is "namespace/name". The
// possible options are ReadyWhen, ReadyOnceApplied (the objects only need to exist), WithListeners, WithOutput,
// Optional and Uses.
func Reference(spec ReferenceSpec, opts ...Option) Resource {
	r := &referenceResource{spec: spec, declared: objectsResource{options: newOptions(opts), kinds: []schema.GroupVersionKind{spec.Kind}}}
	if spec.Kind.Kind == "" || spec.Kind.Version == "" {
		r.declared.faults = append(r.declared.faults, "the Reference has no Kind")
	}
	if (spec.Name == nil) == (spec.Selector == nil) {
		r.declared.faults = append(r.declared.faults, "the Reference needs either a Name or a Selector")
	}
	if r.declared.policy != "" || r.declared.strategy != "" {
		r.declared.faults = append(r.declared.faults, "a Reference is never written, so WithPolicy and WithStrategy are not allowed")
	}
	return r
}

// referenceResource is the Resource that Reference returns.
type referenceResource struct {
	spec     ReferenceSpec
	declared objectsResource // the options and the kind
}

// asObjectsResource returns the kinds and options of a resource. It returns nil if the resource is neither an *objects
// nor a *reference.
func asObjectsResource(resource Resource) *objectsResource {
	switch r := resource.(type) {
	case *objectsResource:
		return r
	case *referenceResource:
		return &r.declared
	}
	return nil
}

func (r *referenceResource) check() []string { return r.declared.check() }

// Listeners returns the listener that reports changes of the objects, and the listeners of WithListeners.
func (r *referenceResource) Listeners() []Listener {
	return append([]Listener{{kind: listenerKindReference}}, r.declared.listeners...)
}

// Reconcile does nothing, because the component only reads the objects.
func (r *referenceResource) Reconcile(context.Context) error { return nil }

// Ready finds the objects and checks whether all of them are ready.
func (r *referenceResource) Ready(ctx context.Context) (Readiness, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return Readiness{}, err
	}
	wanted, err := r.newSearch(ctx)
	if err != nil {
		return Readiness{}, err
	}
	found, err := n.run.session.Find(ctx, n.component, wanted)
	if err != nil {
		return Readiness{}, err
	}
	n.setFoundOutputs(found)
	if len(found) == 0 && !r.declared.optional {
		return NotReady("%s does not exist", wanted), nil
	}
	for _, live := range found {
		reason, err := r.checkReadiness(ctx, n, live)
		switch ref := apply.ToRef(live); {
		case err != nil:
			return Readiness{}, fmt.Errorf("%s: %w", ref, err)
		case reason != "":
			return NotReady("%s: %s", ref, reason), nil
		}
	}
	return Ready(), nil
}

func (r *referenceResource) checkReadiness(ctx context.Context, n *nodeRun, live *unstructured.Unstructured) (reason string, err error) {
	switch {
	case r.declared.alwaysReady:
		return "", nil
	case r.declared.checkReady != nil:
		return r.declared.checkReady(live)
	}
	return n.run.session.CheckReadiness(ctx, live)
}

// newSearch returns the search for the objects.
func (r *referenceResource) newSearch(ctx context.Context) (search, error) {
	wanted := search{Kind: r.spec.Kind, Landscaper: r.spec.Landscaper}
	if r.spec.Name != nil {
		key, err := r.spec.Name(ctx)
		if err == nil && key.Name == "" {
			err = errors.New("the Name of the Reference is empty")
		}
		wanted.Name, wanted.Namespace = key.Name, key.Namespace
		return wanted, err
	}
	selection, err := r.spec.Selector(ctx)
	if err == nil && len(selection.Labels) == 0 {
		err = errors.New("the Selector of the Reference has no labels")
	}
	wanted.Namespace, wanted.Labels = selection.Namespace, selection.Labels
	return wanted, err
}

// Rules returns the rights to read the objects in the target cluster.
func (r *referenceResource) Rules() ([]rbacv1.PolicyRule, error) {
	if r.spec.Landscaper {
		return nil, nil
	}
	return newRules(r.declared.kinds, []string{"get", "list", "watch"})
}

// setFoundOutputs stores the given objects as the outputs of the component. A Reference calls it with the objects that
// it has found. The objects replace the outputs of an earlier call.
func (n *nodeRun) setFoundOutputs(found []*unstructured.Unstructured) {
	outs := make([]*output, len(found))
	for i, live := range found {
		ref := apply.ToRef(live)
		outs[i] = &output{instance: ref.Key().String(), ref: ref, live: live}
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	n.run.outputs[n.place] = outs
}
