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

// Option changes how Object, Template and Versioned keep their objects.
type Option func(*options)

// options holds the effect of all options. The zero value is the default.
type options struct {
	policy    apply.Policy
	strategy  apply.Strategy
	always    bool
	judge     judge
	listeners []Listener
	declared  []schema.GroupVersionKind
	scheme    *runtime.Scheme
	data      func(ctx context.Context) (any, error) // of WithData, or nil
	required  []Requirement                          // of Uses
	outputs   map[string]*jsonpath.Path              // of WithOutput
	optional  bool                                   // it keeps no object for some items
	faults    []string
}

func optionsOf(given []Option) options {
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

// WithPolicy sets what may be done with the objects. The default is apply.Manage.
func WithPolicy(policy apply.Policy) Option { return func(o *options) { o.policy = policy } }

// WithStrategy sets how the objects are written. The default is that of the deployer, which is server-side apply.
func WithStrategy(strategy apply.Strategy) Option { return func(o *options) { o.strategy = strategy } }

// ReadyOnceApplied makes the component ready as soon as its objects are written, regardless of their status.
func ReadyOnceApplied() Option { return func(o *options) { o.always = true } }

// ReadyWhen decides about readiness instead of the default rules of package apply/readiness. T is the type of the
// object, or *unstructured.Unstructured. ready must depend on nothing but the object, because it is not called again
// until that changes.
func ReadyWhen[T client.Object](ready func(live T) (Readiness, error)) Option {
	return func(o *options) {
		if ready == nil {
			o.faults = append(o.faults, "ReadyWhen: the function is nil")
			return
		}
		o.judge = func(live *unstructured.Unstructured) (string, error) {
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
			return line(r.Reason), nil
		}
	}
}

// WithListeners adds listeners to the one on the objects themselves.
func WithListeners(listeners ...Listener) Option {
	return func(o *options) { o.listeners = append(o.listeners, listeners...) }
}

// WithKinds announces the kinds of the objects if they are not known from a Go type, so that Graph.RBAC knows which
// rights they need. An object of another kind is then an error.
func WithKinds(kinds ...schema.GroupVersionKind) Option {
	return func(o *options) { o.declared = append(o.declared, kinds...) }
}

// WithScheme sets where the kind of a Go type is looked up. The default knows the kinds of Kubernetes itself. A type
// that the scheme does not know needs apiVersion and kind in each body, and WithKinds for Graph.RBAC.
func WithScheme(s *runtime.Scheme) Option {
	return func(o *options) {
		if s == nil {
			o.faults = append(o.faults, "WithScheme: the scheme is nil")
			return
		}
		o.scheme = s
	}
}

// decode converts an object to a T, which is a copy or a typed value.
func decode[T any](live *unstructured.Unstructured) (T, error) {
	var none T
	if live == nil {
		return none, fmt.Errorf("there is no object")
	}
	if same, ok := any(live.DeepCopy()).(T); ok {
		return same, nil
	}
	want := reflect.TypeFor[T]()
	if want.Kind() != reflect.Pointer {
		return none, fmt.Errorf("%s cannot be made a %s: that is no pointer", apply.RefOf(live), want)
	}
	typed := reflect.New(want.Elem()).Interface()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed); err != nil {
		return none, fmt.Errorf("decode %s: %w", apply.RefOf(live), err)
	}
	return typed.(T), nil
}

// kindOfType returns the kind of a Go type. It is empty if the scheme does not know it.
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
