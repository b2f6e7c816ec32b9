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

// ReferenceSpec is what Reference makes a Resource of. Either Name or Selector is set.
type ReferenceSpec struct {
	// Kind is that of the objects. Required.
	Kind schema.GroupVersionKind
	// Name returns the name of one object, with a namespace if its kind has one.
	Name func(ctx context.Context) (types.NamespacedName, error)
	// Selector returns which objects are meant: at least one must exist, unless the component is Optional.
	Selector func(ctx context.Context) (Selection, error)
	// Landscaper says that the objects are in the cluster of the deploy items, in the namespace of the item, whatever
	// namespace is returned. The deployer needs the rights to get, list and watch them there.
	Landscaper bool
}

// Selection are objects by their labels.
type Selection struct {
	// Namespace is where they are; all namespaces if it is empty.
	Namespace string
	// Labels are those that all of them have. At least one.
	Labels map[string]string
}

// MaxReferenced is how many objects a Selector may find.
const MaxReferenced = target.MaxReferenced

// Reference is something that someone else creates. It is watched and never written: the component is ready when the objects
// exist and are ready, by the rules of package apply/readiness or those of an option, and a change of them brings about another
// run. Components that require it reach the objects with Name, Output and Outputs, where the instance is "namespace/name".
// Options are ReadyWhen, ReadyOnceApplied (to be there is enough), WithListeners, WithOutput, Optional and Uses.
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

// declaredBy returns the options of a resource; nil if it has none.
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

// Listeners are the changes of the objects, and those of WithListeners.
func (r *reference) Listeners() []Listener {
	return append([]Listener{{kind: listensToReference}}, r.declared.listeners...)
}

// Reconcile does nothing: the objects belong to others.
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

// search is what the item refers to.
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

// Rules are the rights to look at the objects in the target cluster.
func (r *reference) Rules() ([]rbacv1.PolicyRule, error) {
	if r.spec.Landscaper {
		return nil, nil
	}
	plural, _ := meta.UnsafeGuessKindToResource(r.spec.Kind)
	return []rbacv1.PolicyRule{{APIGroups: []string{r.spec.Kind.Group}, Resources: []string{plural.Resource}, Verbs: []string{"get", "list", "watch"}}}, nil
}

// leaveFound notes the objects for those that require the component, in place of those that were found before.
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
