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

// Resource is the implementation of a component. It represents something that must exist for each deploy item. One
// Resource serves all items at once, so it must not store anything about an item. Functions such as Item, Config and
// Output take the data of the current item from the context. A Resource cannot find out what triggered a run.
//
// You rarely need to implement Resource yourself. Object, Template, Versioned, ForEach, Reference and External return
// implementations.
type Resource interface {
	// Reconcile changes the actual state to the desired state, and returns without waiting until the resource is ready.
	// It is called in each run in which all required components are ready, and must be cheap when there is nothing to
	// do. If Reconcile returns an error, the component has failed, and components that require it are not visited. If
	// the error is a deployerlib.WaitFor, the component has not failed, but is not ready yet.
	Reconcile(ctx context.Context) error
	// Ready reports whether the resource has reached the desired state. It is called after Reconcile has returned nil, in
	// the same run, and must not wait. A resource that is not ready blocks only the components that require it.
	Ready(ctx context.Context) (Readiness, error)
	// Listeners returns the listeners that trigger the next run. It is called once, when the graph is built. A resource
	// that may be unready needs at least one listener. Otherwise it would not be checked again.
	Listeners() []Listener
}

// Deleter is implemented by a Resource that must do something when its item is deleted. Objects that the library
// applies need no Deleter, because the library deletes the objects in the inventory.
type Deleter interface {
	// Delete undoes Reconcile. It is also called if Reconcile failed or was never called, and it may be called again
	// after it has succeeded. After an error, the deletion is retried with a backoff. If the error is a
	// deployerlib.WaitFor, the deletion has not failed, but is not complete yet.
	Delete(ctx context.Context) error
}

// Preparer is implemented by a Resource that manages objects in the target cluster. The library stores the inventory
// before it writes the objects. Reconcile must call ApplyPrepared, and Ready should call CheckObjectsReady.
type Preparer interface {
	// Prepare returns the desired objects. It must not change anything. It may also be called before the required
	// components are ready, so that the library learns the names of the objects early. In such a call, Output and Client
	// return errors. The library adds labels that identify the objects, and a name if the object has none.
	Prepare(ctx context.Context) ([]apply.Desired, error)
}

// AlwaysReady is implemented by a Resource that is ready as soon as it is reconciled. Its Ready is never called, and it
// needs no listener.
type AlwaysReady interface {
	// AlwaysReady is called when the graph is built. If it returns false, the resource is treated as if it did not have
	// this method.
	AlwaysReady() bool
}

// RBACProvider is implemented by a Resource that knows which rights it needs in the target cluster. See Graph.RBAC.
type RBACProvider interface {
	// Rules returns the rights. If some rights are not known, Rules returns an error that describes them.
	Rules() ([]rbacv1.PolicyRule, error)
}

// Readiness is the result of Resource.Ready. The zero value means not ready, without a reason.
type Readiness struct {
	// Ready is true if the component is ready. Components that require this component are visited only if Ready is
	// true.
	Ready bool
	// Reason is one line of text that explains why the component is not ready. It is empty if Ready is true.
	Reason string
}

// Ready returns the Readiness of a component that is ready.
func Ready() Readiness { return Readiness{Ready: true} }

// NotReady returns the Readiness of a component that is not ready. The formatted reason is shortened to one line of at
// most 256 characters. It must not contain secrets.
func NotReady(format string, args ...any) Readiness {
	return Readiness{Reason: toLine(fmt.Sprintf(format, args...))}
}

// ReadyIf returns the result of Ready if ok is true. Otherwise it returns the result of NotReady with the reason.
func ReadyIf(ok bool, reason string) Readiness {
	if ok {
		return Ready()
	}
	return NotReady("%s", reason)
}

// maxReason is the maximum length of a reason in the status of an item, in characters.
const maxReason = 256

// toLine converts a text to one line of at most maxReason characters.
func toLine(text string) string {
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
	// Reconcile implements Resource.Reconcile. It must not be nil.
	Reconcile func(ctx context.Context) error
	// Ready implements Resource.Ready. If it is nil, the component is ready as soon as Reconcile succeeds, and needs no
	// listener.
	Ready func(ctx context.Context) (Readiness, error)
	// Delete implements Deleter.Delete. It is nil if there is nothing to undo. If you later remove a component with a
	// Delete from the graph, call Builder.AddRemoved.
	Delete func(ctx context.Context) error
	// Listeners trigger the next run. At least one is required if Ready is not nil.
	Listeners []Listener
	// Rules are the rights that the functions need in the target cluster. Graph.RBAC returns them. Nil means that the
	// rights are not known. An empty slice means that no rights are needed.
	Rules []rbacv1.PolicyRule
}

// External returns a Resource that calls plain functions. Use it for resources outside of the target cluster, and for
// objects that no other Resource of this package can manage.
func External(spec ExternalSpec) Resource {
	if spec.Delete == nil {
		return &externalResource{spec: spec}
	}
	return &externalWithDelete{externalResource{spec: spec}}
}

// externalResource is the Resource that External returns.
type externalResource struct{ spec ExternalSpec }

// externalWithDelete is an external resource with a Delete function.
type externalWithDelete struct{ externalResource }

// Delete calls the Delete of the spec.
func (u *externalWithDelete) Delete(ctx context.Context) error { return u.spec.Delete(ctx) }

// check returns a text for each error in the spec.
func (e *externalResource) check() []string {
	if e.spec.Reconcile == nil {
		return []string{"the External has no Reconcile"}
	}
	return nil
}

// AlwaysReady reports whether the field Ready of the spec is nil.
func (e *externalResource) AlwaysReady() bool { return e.spec.Ready == nil }

// Reconcile calls the Reconcile of the spec.
func (e *externalResource) Reconcile(ctx context.Context) error { return e.spec.Reconcile(ctx) }

// Ready calls the Ready of the spec.
func (e *externalResource) Ready(ctx context.Context) (Readiness, error) {
	if e.spec.Ready == nil {
		return Ready(), nil
	}
	return e.spec.Ready(ctx)
}

// Listeners returns the listeners of the spec.
func (e *externalResource) Listeners() []Listener { return e.spec.Listeners }

// Rules returns the rules of the spec.
func (e *externalResource) Rules() ([]rbacv1.PolicyRule, error) {
	if e.spec.Rules == nil {
		return nil, errors.New("the field Rules of the External is nil; set it to an empty list if no rights are needed")
	}
	return e.spec.Rules, nil
}
