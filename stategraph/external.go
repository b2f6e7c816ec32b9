// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
)

// ExternalSpec is what External makes a Resource of.
type ExternalSpec struct {
	// Reconcile is as in Resource. Required.
	Reconcile func(ctx context.Context) error
	// Ready is as in Resource. nil: it is ready once Reconcile succeeded, and needs no listener.
	Ready func(ctx context.Context) (Readiness, error)
	// Delete is as in Deleter. nil: there is nothing to undo. A component that has one must not just leave the code: see
	// Builder.Removed.
	Delete func(ctx context.Context) error
	// Listeners bring the next run about. At least one if there is a Ready.
	Listeners []Listener
	// Rules are the rights that the functions need in the target cluster, for Graph.RBAC. nil: that is not known; empty:
	// none.
	Rules []rbacv1.PolicyRule
}

// External is something outside of the target cluster's objects, or that no ready-made Resource fits: plain functions.
func External(spec ExternalSpec) Resource {
	if spec.Delete == nil {
		return &external{spec: spec}
	}
	return &undoable{external{spec: spec}}
}

// external is what External returns.
type external struct{ spec ExternalSpec }

// undoable is an external with a Delete.
type undoable struct{ external }

// Delete is the Delete of the spec.
func (u *undoable) Delete(ctx context.Context) error { return u.spec.Delete(ctx) }

// check tells what is wrong with the resource.
func (e *external) check() []string {
	if e.spec.Reconcile == nil {
		return []string{"the External has no Reconcile"}
	}
	return nil
}

// AlwaysReady tells that there is no Ready.
func (e *external) AlwaysReady() bool { return e.spec.Ready == nil }

// Reconcile is the Reconcile of the spec.
func (e *external) Reconcile(ctx context.Context) error { return e.spec.Reconcile(ctx) }

// Ready is the Ready of the spec.
func (e *external) Ready(ctx context.Context) (Readiness, error) {
	if e.spec.Ready == nil {
		return Ready(), nil
	}
	return e.spec.Ready(ctx)
}

// Listeners are those of the spec.
func (e *external) Listeners() []Listener { return e.spec.Listeners }

// Rules are those of the spec.
func (e *external) Rules() ([]rbacv1.PolicyRule, error) {
	if e.spec.Rules == nil {
		return nil, errors.New("it is an External, which does not say what rights it needs; set Rules, empty for none")
	}
	return e.spec.Rules, nil
}
