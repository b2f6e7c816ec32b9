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

// Resource is one node of a graph. It represents something that must exist for each deploy item. One Resource serves
// all items at once, so it must not hold anything about an item. What is known of the current item is in the context
// (see From, Config, Output). A Resource cannot find out why a run takes place.
//
// Most resources need not be implemented, because Object, Template, Versioned, ForEach and External return them.
type Resource interface {
	// Reconcile makes the actual state match the intent, and returns without waiting for the outcome. It is called in
	// each run in which all that the resource requires is ready, and must be cheap when there is nothing to do. An
	// error means that the component has failed, and that what requires it is not touched. A deployerlib.WaitFor means
	// that it is not ready yet.
	Reconcile(ctx context.Context) error
	// Ready reports whether the actual state matches the intent. It is called after a Reconcile without error, in the
	// same run, and must not wait. A resource that is not ready blocks all that require it, and nothing else.
	Ready(ctx context.Context) (Readiness, error)
	// Listeners returns what triggers the next run when the resource is not ready. It is called when the graph is
	// built, without an item. A resource that may be unready needs at least one, or it would not be checked again.
	Listeners() []Listener
}

// Deleter is a Resource that has something to undo when its item is deleted. Applied objects need no Deleter, because
// the inventory lists them.
type Deleter interface {
	// Delete undoes Reconcile. It is also called if Reconcile never ran or ended halfway, and again after it succeeded.
	// After an error the deletion is retried with a backoff. A deployerlib.WaitFor means that it is not done yet.
	Delete(ctx context.Context) error
}

// Preparer is a Resource that keeps objects of the target cluster. The inventory is stored before they are written. The
// resource then calls ApplyPrepared from its Reconcile, and ObjectsReady from its Ready.
type Preparer interface {
	// Prepare returns the desired objects. It must not change anything. It may also be called before what the resource
	// requires is ready, for the names of the objects alone. Output and Client return errors then. The library adds
	// labels that identify the objects, and a name if there is none.
	Prepare(ctx context.Context) ([]apply.Desired, error)
}

// AlwaysReady marks a Resource that is ready as soon as it is reconciled. Its Ready is never called, and it needs no
// listener.
type AlwaysReady interface {
	// AlwaysReady is called when the graph is built. If it returns false, the resource is treated as if it had no such
	// method.
	AlwaysReady() bool
}

// Ruler is a Resource that knows what rights it needs in the target cluster; see Graph.RBAC.
type Ruler interface {
	// Rules returns the rights, or an error that says what cannot be known.
	Rules() ([]rbacv1.PolicyRule, error)
}

// Readiness is the result of Resource.Ready. The zero value means not ready, without a reason.
type Readiness struct {
	// Ready unblocks the components that require this one.
	Ready bool
	// Reason says in one line for people what is waited for. It is empty if Ready is true.
	Reason string
}

// Ready returns a Readiness that is ready.
func Ready() Readiness { return Readiness{Ready: true} }

// NotReady returns a Readiness that says what is waited for. The text becomes one line of at most 256 characters. It
// must not contain secrets.
func NotReady(format string, args ...any) Readiness {
	return Readiness{Reason: line(fmt.Sprintf(format, args...))}
}

// ReadyIf returns Ready if ok is true. Otherwise it returns NotReady with the reason.
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

// ExternalSpec configures External.
type ExternalSpec struct {
	// Reconcile is the Reconcile of a Resource. It is required.
	Reconcile func(ctx context.Context) error
	// Ready is the Ready of a Resource. If it is nil, the component is ready once Reconcile succeeded, and needs no
	// listener.
	Ready func(ctx context.Context) (Readiness, error)
	// Delete is the Delete of a Deleter. If it is nil, there is nothing to undo. A component with a Delete must not
	// just be removed from the code; see Builder.Removed.
	Delete func(ctx context.Context) error
	// Listeners trigger the next run. At least one is required if there is a Ready.
	Listeners []Listener
	// Rules are the rights that the functions need in the target cluster, for Graph.RBAC. If it is nil, they are not
	// known. If it is empty, there are none.
	Rules []rbacv1.PolicyRule
}

// External returns a Resource of plain functions, for what is not an object of the target cluster, or what no other
// Resource of this package can express.
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

// Delete calls the Delete of the spec.
func (u *undoable) Delete(ctx context.Context) error { return u.spec.Delete(ctx) }

// check returns what is wrong with the resource.
func (e *external) check() []string {
	if e.spec.Reconcile == nil {
		return []string{"the External has no Reconcile"}
	}
	return nil
}

// AlwaysReady reports whether the spec has no Ready.
func (e *external) AlwaysReady() bool { return e.spec.Ready == nil }

// Reconcile calls the Reconcile of the spec.
func (e *external) Reconcile(ctx context.Context) error { return e.spec.Reconcile(ctx) }

// Ready calls the Ready of the spec.
func (e *external) Ready(ctx context.Context) (Readiness, error) {
	if e.spec.Ready == nil {
		return Ready(), nil
	}
	return e.spec.Ready(ctx)
}

// Listeners returns the listeners of the spec.
func (e *external) Listeners() []Listener { return e.spec.Listeners }

// Rules returns the rules of the spec.
func (e *external) Rules() ([]rbacv1.PolicyRule, error) {
	if e.spec.Rules == nil {
		return nil, errors.New("it is an External, which does not say what rights it needs; set Rules, empty for none")
	}
	return e.spec.Rules, nil
}
