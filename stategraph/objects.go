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

// objects is a Resource that keeps objects of the target cluster. All resources of this package except External use it.
type objects struct {
	// render returns the desired objects, which belong to the caller. An element that is nil means that the item has no
	// such object.
	render func(ctx context.Context) ([]*unstructured.Unstructured, error)
	// kinds are the kinds of the objects, or nil if they are not known before a run.
	kinds  []schema.GroupVersionKind
	uses   []template.Use // of its template
	faults []string
	options
}

// check returns what is wrong with the resource.
func (o *objects) check() []string { return append(o.faults, o.options.faults...) }

// AlwaysReady reports whether the objects are ready once they are applied.
func (o *objects) AlwaysReady() bool { return o.always }

// Listeners returns the listener on the objects, and those of WithListeners.
func (o *objects) Listeners() []Listener {
	if o.always {
		return o.listeners
	}
	return append([]Listener{Watch()}, o.listeners...)
}

// Prepare returns the desired objects.
func (o *objects) Prepare(ctx context.Context) ([]apply.Desired, error) {
	rendered, err := o.render(ctx)
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
	return desired, nil
}

// checkKind refuses kinds that WithKinds did not announce, because the rights for them may be missing.
func (o *objects) checkKind(obj *unstructured.Unstructured) error {
	gvk := obj.GroupVersionKind()
	for _, kind := range o.kinds {
		if kind.GroupKind() == gvk.GroupKind() {
			return nil
		}
	}
	if len(o.kinds) == 0 {
		return nil
	}
	return fmt.Errorf("%s is of a kind that WithKinds did not announce", apply.RefOf(obj))
}

// Reconcile applies the objects.
func (o *objects) Reconcile(ctx context.Context) error { return ApplyPrepared(ctx) }

// Ready reports whether all objects are ready.
func (o *objects) Ready(ctx context.Context) (Readiness, error) {
	n, err := From(ctx)
	if err != nil {
		return Readiness{}, err
	}
	return n.objectsReady(ctx, o.judge)
}

// Rules returns the rights for the kinds of the objects.
func (o *objects) Rules() ([]rbacv1.PolicyRule, error) { return rulesFor(o.kinds) }

// ApplyPrepared applies the objects that Prepare returned to the target cluster. Objects that are known to be as
// desired cost no call. Use it in the Reconcile of a Resource with Prepare. It returns the joined errors of all
// objects, or ErrNoRun.
func ApplyPrepared(ctx context.Context) error {
	n, err := From(ctx)
	if err != nil {
		return err
	}
	if n.kept == nil {
		return errors.New("nothing was prepared: the resource has no Prepare")
	}
	if len(n.kept.desired) == 0 {
		return nil
	}
	outcomes, err := n.run.session.Apply(ctx, n.run.graph.nodes[n.place].unit, n.kept.desired)
	if err != nil {
		return err
	}
	n.kept.outcomes = outcomes
	n.leave(outcomes)
	var errs []error
	for _, o := range outcomes {
		if o.Err != nil {
			errs = append(errs, withAdvice(o.Err))
		}
	}
	return errors.Join(errs...)
}

// withAdvice adds to an error what the author of the graph can do.
func withAdvice(err error) error {
	if one, ok := errors.AsType[*apply.Error](err); ok && one.Immutable {
		return fmt.Errorf("%w; with the option WithStrategy(apply.Recreate) the object is deleted and created anew", err)
	}
	return err
}

// ObjectsReady reports whether the objects that ApplyPrepared applied are ready, by the rules of package
// apply/readiness. Use it in the Ready of a Resource with Prepare.
func ObjectsReady(ctx context.Context) (Readiness, error) {
	n, err := From(ctx)
	if err != nil {
		return Readiness{}, err
	}
	return n.objectsReady(ctx, nil)
}

// objectsReady checks one object after the other until one is not ready.
func (n *Node) objectsReady(ctx context.Context, by judge) (Readiness, error) {
	if n.kept == nil {
		return Readiness{}, errors.New("nothing was prepared: the resource has no Prepare")
	}
	for _, o := range n.kept.outcomes {
		reason := o.Waiting
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
