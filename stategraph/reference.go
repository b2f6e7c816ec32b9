// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
)

// ReferenceSpec configures Reference. Either Name or Selector is set.
type ReferenceSpec struct {
	// Kind is the kind of the objects. It is required.
	Kind schema.GroupVersionKind
	// Name returns the name of one object, with a namespace if its kind has one.
	Name func(ctx context.Context) (types.NamespacedName, error)
	// Selector selects the objects. At least one must exist, unless the component is Optional.
	Selector func(ctx context.Context) (Selection, error)
	// Landscaper means that the objects are in the cluster of the deploy items, in the namespace of the item,
	// regardless of the namespace that is returned. The deployer needs the rights to get, list and watch them there.
	Landscaper bool
}

// Selection selects objects by their labels.
type Selection struct {
	// Namespace is their namespace. Empty means all namespaces.
	Namespace string
	// Labels are the labels that all of them have. At least one is required.
	Labels map[string]string
}

// MaxReferenced is how many objects a Selector may find.
const MaxReferenced = target.MaxReferenced

// Reference refers to objects that someone else creates. They are watched and never written. The component is ready
// when the objects exist and are ready, by the rules of package apply/readiness or those of an option, and a change of
// them triggers another run. Components that require it reach the objects with Name, Output and Outputs, where the
// instance is "namespace/name". The options are ReadyWhen, ReadyOnceApplied (it is enough that the objects exist),
// WithListeners, WithOutput, Optional and Uses.
func Reference(spec ReferenceSpec, opts ...Option) Resource {
	r := &reference{spec: spec, declared: objects{options: optionsOf(opts), kinds: []schema.GroupVersionKind{spec.Kind}}}
	if spec.Kind.Kind == "" || spec.Kind.Version == "" {
		r.declared.faults = append(r.declared.faults, "the Reference has no Kind")
	}
	if (spec.Name == nil) == (spec.Selector == nil) {
		r.declared.faults = append(r.declared.faults, "the Reference needs either a Name or a Selector")
	}
	if r.declared.policy != "" || r.declared.strategy != "" {
		r.declared.faults = append(r.declared.faults, "a Reference is never written, so it has neither policy nor strategy")
	}
	return r
}

// reference is what Reference returns.
type reference struct {
	spec     ReferenceSpec
	declared objects // its options
}

// declaredBy returns the options of a resource, or nil if it has none.
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

// Listeners returns the listener on the objects, and those of WithListeners.
func (r *reference) Listeners() []Listener {
	return append([]Listener{{kind: listensToReference}}, r.declared.listeners...)
}

// Reconcile does nothing, because the objects belong to others.
func (r *reference) Reconcile(context.Context) error { return nil }

// Ready looks for the objects, and reports whether all are ready.
func (r *reference) Ready(ctx context.Context) (Readiness, error) {
	n, err := From(ctx)
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

func (r *reference) judge(ctx context.Context, n *Node, live *unstructured.Unstructured) (reason string, err error) {
	switch {
	case r.declared.always:
		return "", nil
	case r.declared.judge != nil:
		return r.declared.judge(live)
	}
	return n.run.session.Judge(ctx, live)
}

// search returns what the item refers to.
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
	plural, _ := meta.UnsafeGuessKindToResource(r.spec.Kind)
	return []rbacv1.PolicyRule{{APIGroups: []string{r.spec.Kind.Group}, Resources: []string{plural.Resource}, Verbs: []string{"get", "list", "watch"}}}, nil
}

// leaveFound records the objects for the components that require this one, instead of those that were found before.
func (n *Node) leaveFound(found []*unstructured.Unstructured) {
	outs := make([]*output, len(found))
	for i, live := range found {
		ref := apply.RefOf(live)
		outs[i] = &output{instance: ref.Key().String(), ref: ref, live: live}
	}
	n.run.mu.Lock()
	defer n.run.mu.Unlock()
	n.run.outputs[n.place] = outs
}
