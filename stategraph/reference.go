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
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
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

// MaxReferenced is the maximum number of objects that may match a Selector.
const MaxReferenced = target.MaxReferenced

// Reference refers to objects that other clients create. The objects are watched and never written. The component is
// ready when the objects exist and are ready. The rules of package apply/readiness determine whether an object is
// ready, unless an option sets another rule. A change of an object triggers another run. Components that require this
// component get the objects from Name, Output and Outputs. In Outputs, the name of an instance is "namespace/name". The
// possible options are ReadyWhen, ReadyOnceApplied (the objects only need to exist), WithListeners, WithOutput,
// Optional and Uses.
func Reference(spec ReferenceSpec, opts ...Option) Resource {
	r := &reference{spec: spec, declared: objects{options: optionsOf(opts), kinds: []schema.GroupVersionKind{spec.Kind}}}
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

// reference is the Resource that Reference returns.
type reference struct {
	spec     ReferenceSpec
	declared objects // the options and the kind
}

// declaredBy returns the kinds and options of a resource. It returns nil if the resource is neither an *objects nor a
// *reference.
func declaredBy(resource Resource) *objects {
	switch r := resource.(type) {
	case *objects:
		return r
	case *reference:
		return &r.declared
	}
	return nil
}

func (r *reference) check() []string { return r.declared.check() }

// Listeners returns the listener that reports changes of the objects, and the listeners of WithListeners.
func (r *reference) Listeners() []Listener {
	return append([]Listener{{kind: listensToReference}}, r.declared.listeners...)
}

// Reconcile does nothing, because the component only reads the objects.
func (r *reference) Reconcile(context.Context) error { return nil }

// Ready finds the objects and checks whether all of them are ready.
func (r *reference) Ready(ctx context.Context) (Readiness, error) {
	n, err := nodeOf(ctx)
	if err != nil {
		return Readiness{}, err
	}
	wanted, err := r.search(ctx)
	if err != nil {
		return Readiness{}, err
	}
	found, err := n.run.session.Find(ctx, n.component, wanted)
	if err != nil {
		return Readiness{}, err
	}
	n.leaveFound(found)
	if len(found) == 0 && !r.declared.optional {
		return NotReady("%s does not exist", wanted), nil
	}
	for _, live := range found {
		reason, err := r.judge(ctx, n, live)
		switch ref := apply.RefOf(live); {
		case err != nil:
			return Readiness{}, fmt.Errorf("%s: %w", ref, err)
		case reason != "":
			return NotReady("%s: %s", ref, reason), nil
		}
	}
	return Ready(), nil
}

func (r *reference) judge(ctx context.Context, n *nodeRun, live *unstructured.Unstructured) (reason string, err error) {
	switch {
	case r.declared.always:
		return "", nil
	case r.declared.judge != nil:
		return r.declared.judge(live)
	}
	return n.run.session.Judge(ctx, live)
}

// search returns the search for the objects.
func (r *reference) search(ctx context.Context) (search, error) {
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
func (r *reference) Rules() ([]rbacv1.PolicyRule, error) {
	if r.spec.Landscaper {
		return nil, nil
	}
	return rulesFor(r.declared.kinds, []string{"get", "list", "watch"})
}

// leaveFound stores the given objects as the outputs of the component. A Reference calls it with the objects that it
// has found. The objects replace the outputs of an earlier call.
func (n *nodeRun) leaveFound(found []*unstructured.Unstructured) {
	outs := make([]*output, len(found))
	for i, live := range found {
		ref := apply.RefOf(live)
		outs[i] = &output{instance: ref.Key().String(), ref: ref, live: live}
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	n.run.outputs[n.place] = outs
}
