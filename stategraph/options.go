// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/jsonpath"
)

// Option changes the behavior of Object, Template, Versioned and Reference.
type Option func(*options)

// options contains the settings of all options.
type options struct {
	policy        apply.Policy
	strategy      apply.Strategy
	alwaysReady   bool
	checkReady    readinessFunc
	listeners     []Listener
	declaredKinds []schema.GroupVersionKind
	scheme        *runtime.Scheme
	data          func(ctx context.Context) (any, error) // set by WithData, or nil
	required      []Requirement                          // set by Uses
	outputs       map[string]*jsonpath.Path              // set by WithOutput
	optional      bool                                   // the component has no object for some items
	faults        []string
}

func newOptions(given []Option) options {
	o := options{scheme: scheme.Scheme}
	for _, option := range given {
		if option == nil {
			o.faults = append(o.faults, "an option is nil")
			continue
		}
		option(&o)
	}
	return o
}

// WithPolicy sets the policy. It determines whether the library may create, change and delete the objects. The default
// is apply.PolicyManage.
func WithPolicy(policy apply.Policy) Option { return func(o *options) { o.policy = policy } }

// WithStrategy sets how the objects are written. The default is server-side apply.
func WithStrategy(strategy apply.Strategy) Option { return func(o *options) { o.strategy = strategy } }

// ReadyOnceApplied makes the component ready as soon as its objects are applied, regardless of their status.
func ReadyOnceApplied() Option { return func(o *options) { o.alwaysReady = true } }

// ReadyWhen sets a function that decides whether an object is ready, instead of the default rules of package
// apply/readiness. T is the type of the object, or *unstructured.Unstructured. The result of `ready` must depend only
// on the object, because the library does not call `ready` again until the object changes.
func ReadyWhen[T client.Object](ready func(live T) (Readiness, error)) Option {
	return func(o *options) {
		if ready == nil {
			o.faults = append(o.faults, "ReadyWhen: the function is nil")
			return
		}
		o.checkReady = func(live *unstructured.Unstructured) (string, error) {
			typed, err := decode[T](live)
			if err != nil {
				return "", err
			}
			r, err := ready(typed)
			switch {
			case err != nil || r.Ready:
				return "", err
			case r.Reason == "":
				return "not ready yet", nil
			}
			return toLine(r.Reason), nil
		}
	}
}

// WithListeners adds listeners. The component also keeps its default listener, which reports changes of the objects.
func WithListeners(listeners ...Listener) Option {
	return func(o *options) { o.listeners = append(o.listeners, listeners...) }
}

// WithKinds sets the kinds of the objects, so that Graph.RBAC can return the rights for these kinds. Use it if no Go
// type determines the kind. If the component returns an object of another kind, the component fails.
func WithKinds(kinds ...schema.GroupVersionKind) Option {
	return func(o *options) { o.declaredKinds = append(o.declaredKinds, kinds...) }
}

// WithScheme sets the scheme that maps Go types to kinds. The default scheme contains the built-in kinds of Kubernetes.
// If the scheme does not know the type of an object, the object must have apiVersion and kind, and Graph.RBAC needs
// WithKinds.
func WithScheme(s *runtime.Scheme) Option {
	return func(o *options) {
		if s == nil {
			o.faults = append(o.faults, "WithScheme: the scheme is nil")
			return
		}
		o.scheme = s
	}
}

// decode returns a copy of an object as a T. T is *unstructured.Unstructured or a pointer to a Go type for the kind of
// the object.
func decode[T any](live *unstructured.Unstructured) (T, error) {
	var none T
	if same, ok := any(live.DeepCopy()).(T); ok {
		return same, nil
	}
	typed := reflect.New(reflect.TypeFor[T]().Elem()).Interface()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed); err != nil {
		return none, fmt.Errorf("decode %s: %w", apply.ToRef(live), err)
	}
	return typed.(T), nil
}

// kindOfType returns the kind of a Go type. The result is empty if the scheme does not know the type.
func kindOfType(s *runtime.Scheme, of reflect.Type) schema.GroupVersionKind {
	if of.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{}
	}
	obj, ok := reflect.TypeAssert[runtime.Object](reflect.New(of.Elem()))
	if !ok {
		return schema.GroupVersionKind{}
	}
	kinds, _, err := s.ObjectKinds(obj)
	if err != nil || len(kinds) != 1 {
		return schema.GroupVersionKind{}
	}
	return kinds[0]
}
