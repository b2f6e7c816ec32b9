// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/stategraph/internal/template"
)

// objectsResource is the Resource that Object, Template, Versioned and ForEach return. It manages objects in the target
// cluster.
type objectsResource struct {
	// render returns the desired objects. The caller may modify them. An element is nil if the component has no such
	// object for the item.
	render func(ctx context.Context) ([]*unstructured.Unstructured, error)
	// kinds contains the kinds of the objects. It is nil if the kinds are known only during a run.
	kinds  []schema.GroupVersionKind
	uses   []template.Use // the components that the template uses
	faults []string
	options
}

// check returns a text for each error in the arguments and options of the resource.
func (o *objectsResource) check() []string { return append(o.faults, o.options.faults...) }

// AlwaysReady reports whether the objects are ready as soon as they are applied.
func (o *objectsResource) AlwaysReady() bool { return o.alwaysReady }

// Listeners returns Watch and the listeners of WithListeners.
func (o *objectsResource) Listeners() []Listener {
	if o.alwaysReady {
		return o.listeners
	}
	return append([]Listener{Watch()}, o.listeners...)
}

// Prepare returns the desired objects.
func (o *objectsResource) Prepare(ctx context.Context) ([]apply.Desired, error) {
	rendered, err := o.render(ctx)
	faults, err := splitInstanceErrors(err)
	if err != nil {
		return nil, err
	}
	desired := make([]apply.Desired, 0, len(rendered))
	for _, obj := range rendered {
		if obj == nil {
			continue
		}
		if err := o.checkKind(obj); err != nil {
			return nil, err
		}
		desired = append(desired, apply.Desired{Object: obj, Policy: o.policy, Strategy: o.strategy})
	}
	return desired, faults
}

// checkKind returns an error if the option WithKinds is set and does not contain the kind of the object. The deployer
// may not have the rights for such a kind.
func (o *objectsResource) checkKind(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	for _, kind := range o.kinds {
		if kind.GroupKind() == gvk.GroupKind() {
			return nil
		}
	}
	if len(o.kinds) == 0 {
		return nil
	}
	return fmt.Errorf("%s is of a kind that WithKinds does not list", apply.ToRef(obj))
}

// Reconcile applies the objects.
func (o *objectsResource) Reconcile(ctx context.Context) error { return ApplyPrepared(ctx) }

// Ready returns the readiness of the objects.
func (o *objectsResource) Ready(ctx context.Context) (Readiness, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return Readiness{}, err
	}
	return n.checkObjects(ctx, o.checkReady)
}

// Rules returns the rights for the kinds of the objects.
func (o *objectsResource) Rules() ([]rbacv1.PolicyRule, error) { return newRules(o.kinds, verbs) }

// ApplyPrepared applies the objects, which Prepare has returned, to the target cluster. An object that is known to be
// up to date causes no request. Call ApplyPrepared in the Reconcile of a Preparer. It joins the errors of all objects.
// Outside of a run, it returns ErrNoRun.
func ApplyPrepared(ctx context.Context) error {
	n, err := getNodeRun(ctx)
	if err != nil {
		return err
	}
	if n.prepared == nil {
		return errors.New("nothing was prepared: the resource has no Prepare")
	}
	if len(n.prepared.desired) == 0 {
		return n.prepared.err
	}
	outcomes, err := n.run.session.Apply(ctx, n.run.graph.nodes[n.place].unit, n.prepared.desired)
	if err != nil {
		return err
	}
	n.prepared.outcomes = outcomes
	n.addAppliedOutputs(outcomes)
	errs := []error{n.prepared.err}
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, withAdvice(o.Err))
		}
	}
	return errors.Join(errs...)
}

// withAdvice adds to some errors what the author of the graph can do about them.
func withAdvice(err error) error {
	if one, ok := errors.AsType[*apply.Error](err); ok && one.Immutable {
		return fmt.Errorf("%w; use the option WithStrategy(apply.Recreate) to delete and recreate the object", err)
	}
	return err
}

// CheckObjectsReady uses the rules of package apply/readiness to check whether the objects that ApplyPrepared applied
// are ready. Call CheckObjectsReady in the Ready of a Preparer.
func CheckObjectsReady(ctx context.Context) (Readiness, error) {
	n, err := getNodeRun(ctx)
	if err != nil {
		return Readiness{}, err
	}
	return n.checkObjects(ctx, nil)
}

// checkObjects checks the objects in order until one of them is not ready.
func (n *nodeRun) checkObjects(ctx context.Context, by readinessFunc) (Readiness, error) {
	if n.prepared == nil {
		return Readiness{}, errors.New("nothing was prepared: the resource has no Prepare")
	}
	for _, o := range n.prepared.outcomes {
		reason := o.WaitMessage
		if reason == "" {
			var err error
			if reason, err = n.run.session.Ready(ctx, o.Ref, by); err != nil {
				return Readiness{}, fmt.Errorf("%s: %w", o.Ref, err)
			}
		}
		if reason != "" {
			return NotReady("%s: %s", o.Ref, reason), nil
		}
	}
	return Ready(), nil
}
