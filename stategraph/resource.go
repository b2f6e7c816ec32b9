// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/deployerkit/deployerkit/apply"
)

// Resource is one node of a graph: something that shall exist for each deploy item. One Resource serves all items at
// once, so it must not hold anything about an item: what is known of the item that is being processed is in the context
// (see From, Config, Output). Why a run takes place is told to nobody.
//
// Most resources need not be written: Object, Template, Versioned, ForEach and External make them.
type Resource interface {
	// Reconcile makes reality match the intent, and returns without waiting for the outcome. It is called in each run in
	// which all that the resource requires is ready, and must be cheap when nothing is to be done.
	// Errors: the component has failed; what requires it is not touched. deployerlib.WaitFor: it is not ready yet.
	Reconcile(ctx context.Context) error
	// Ready tells whether reality matches the intent. It is called after a Reconcile without error, in the same run, and
	// must not wait. What is not ready blocks all that requires it, and nothing else.
	Ready(ctx context.Context) (Readiness, error)
	// Listeners tells what brings the next run about, once the resource is not ready. It is called when the graph is
	// built, without an item. A resource that may be unready needs at least one, or nobody would look at it again.
	Listeners() []Listener
}

// Deleter is a Resource that has something to undo when its item is deleted. Objects that were applied need none: the
// inventory knows them.
type Deleter interface {
	// Delete undoes Reconcile; it is also called when Reconcile never ran or ended halfway, and again after it succeeded.
	// Errors: the deletion is tried again with a backoff; deployerlib.WaitFor: it is not done yet.
	Delete(ctx context.Context) error
}

// Preparer is a Resource that keeps objects of the target cluster. The inventory is stored before they are written; the resource
// then calls ApplyPrepared from its Reconcile, and ObjectsReady from its Ready.
type Preparer interface {
	// Prepare returns the objects as they shall be. It must not change anything. It may also be called before what the resource
	// requires is ready, for the names of the objects alone: Output and Client are errors then. Labels that identify the objects are
	// added by the library, and a name where there is none.
	Prepare(ctx context.Context) ([]apply.Desired, error)
}

// AlwaysReady marks a Resource that is ready as soon as it is reconciled. Its Ready is never called, and it needs no
// listener.
type AlwaysReady interface {
	// AlwaysReady is asked when the graph is built. false: as if the method was not there.
	AlwaysReady() bool
}

// Ruler is a Resource that knows what rights it needs in the target cluster; see Graph.RBAC.
type Ruler interface {
	// Rules returns them. An error tells what cannot be known.
	Rules() ([]rbacv1.PolicyRule, error)
}

// Readiness is the answer of Resource.Ready. The zero value means: not ready, for no stated reason.
type Readiness struct {
	// Ready lets those run that require the component.
	Ready bool
	// Reason is for people: one line that tells what is waited for. Empty when ready.
	Reason string
}

// Ready says that nothing is left to wait for.
func Ready() Readiness { return Readiness{Ready: true} }

// NotReady says what is waited for. The text becomes one line of at most 256 characters; do not put secrets into it.
func NotReady(format string, args ...any) Readiness {
	return Readiness{Reason: line(fmt.Sprintf(format, args...))}
}

// ReadyIf is ready if ok, else not, for the given reason.
func ReadyIf(ok bool, reason string) Readiness {
	if ok {
		return Ready()
	}
	return NotReady("%s", reason)
}

// maxReason bounds the texts that reach the status of an item, in characters.
const maxReason = 256

// line makes one bounded line of a text.
func line(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fields := strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	out := []rune(strings.Join(fields, " "))
	if len(out) > maxReason {
		return string(out[:maxReason-1]) + "…"
	}
	return string(out)
}

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
