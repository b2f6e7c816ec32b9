// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/apply"
)

// Object manages one object of any kind in the target cluster. The function `body` returns the complete desired object.
// Other clients may set the fields that `body` does not set. T is a pointer to a Go type, or
// *unstructured.Unstructured.
//
//	Object(func(ctx context.Context) (*appsv1.StatefulSet, error) { … })
//
// If the scheme knows the type, `body` need not set apiVersion and kind. If `body` sets no name, the name consists of
// generateName or the component name, and a hash. The hash is the same in each run. Unless T is
// *unstructured.Unstructured, the library does not send the status. If `body` returns nil, the component has no object
// for this item and is ready. Otherwise the rules of package apply/readiness decide whether the object is ready, unless
// an option sets another rule. The component listens to the object. If `body` returns an error, the component fails.
func Object[T client.Object](body func(ctx context.Context) (T, error), opts ...Option) Resource {
	r := newObject("Object", body, opts, func(context.Context, *unstructured.Unstructured) error { return nil })
	if of := reflect.TypeFor[T](); !r.alwaysReady && r.checkReady == nil && !canCheckReadiness(of) {
		r.faults = append(r.faults, fmt.Sprintf("the status of a %s has neither conditions nor observedGeneration, so its readiness is not known; use ReadyWhen or ReadyOnceApplied", of))
	}
	return r
}

// newObject returns a resource for one object. The function `finish` completes the object that `body` returns.
func newObject[T client.Object](what string, body func(ctx context.Context) (T, error), opts []Option, finish func(context.Context, *unstructured.Unstructured) error) *objectsResource {
	r := newObjects(opts, kindOf[T])
	if body == nil {
		r.faults = append(r.faults, fmt.Sprintf("the body of %s is nil", what))
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		obj, err := renderBody(ctx, body, r.scheme)
		if err == nil && obj != nil {
			err = finish(ctx, obj)
		}
		return []*unstructured.Unstructured{obj}, err
	}
	return r
}

// canCheckReadiness reports whether the default rules can check objects of a Go type. They cannot check a custom type
// whose status is a struct with neither Conditions nor ObservedGeneration.
func canCheckReadiness(of reflect.Type) bool {
	if of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct || !kindOfType(scheme.Scheme, of).Empty() {
		return true
	}
	status, found := of.Elem().FieldByName("Status")
	if !found || status.Type.Kind() != reflect.Struct {
		return true
	}
	_, conditions := status.Type.FieldByName("Conditions")
	_, generation := status.Type.FieldByName("ObservedGeneration")
	return conditions || generation
}

// newObjects returns an `objects` in which only the options and the kinds are set. If no option sets the kinds, they
// are the result of the function `static`.
func newObjects(opts []Option, static func(*runtime.Scheme) []schema.GroupVersionKind) *objectsResource {
	r := &objectsResource{options: newOptions(opts)}
	if r.kinds = r.declaredKinds; len(r.kinds) == 0 && static != nil {
		r.kinds = static(r.scheme)
	}
	return r
}

// kindOf returns a slice with the kind of T, or nil if the scheme does not know T.
func kindOf[T client.Object](s *runtime.Scheme) []schema.GroupVersionKind {
	if gvk := kindOfType(s, reflect.TypeFor[T]()); !gvk.Empty() {
		return []schema.GroupVersionKind{gvk}
	}
	return nil
}

// renderBody calls `body` and converts the returned object. It removes fields that only the API server sets. It returns
// nil if `body` returns no object.
func renderBody[T client.Object](ctx context.Context, body func(ctx context.Context) (T, error), s *runtime.Scheme) (*unstructured.Unstructured, error) {
	typed, err := body(ctx)
	if err != nil {
		return nil, err
	}
	if v := reflect.ValueOf(typed); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, nil
	}
	if obj, ok := any(typed).(*unstructured.Unstructured); ok {
		return obj.DeepCopy(), nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("encode a %T: %w", typed, err)
	}
	delete(fields, "status")
	dropNulls(fields)
	obj := &unstructured.Unstructured{Object: fields}
	if obj.GetKind() == "" || obj.GetAPIVersion() == "" {
		gvk := kindOfType(s, reflect.TypeOf(typed))
		if gvk.Empty() {
			return nil, fmt.Errorf("a %T needs apiVersion and kind: the scheme does not know the type", typed)
		}
		obj.SetGroupVersionKind(gvk)
	}
	return obj, nil
}

// dropNulls removes null values. An encoded Go type contains null values for unset fields such as creationTimestamp.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if field == nil {
				delete(v, key)
				continue
			}
			dropNulls(field)
		}
	case []any:
		for _, element := range v {
			dropNulls(element)
		}
	}
}

// ConfigData contains the types of the objects that Versioned can manage.
type ConfigData interface {
	*corev1.ConfigMap | *corev1.Secret
	client.Object
}

// Versioned manages a ConfigMap or Secret that is replaced instead of changed. The object is immutable, and its name
// ends with a hash of the content. If the content changes, the library creates a new object with another name.
// Components that require this component get the new name from Name. If they put it in a Pod template, the Pods are
// restarted. The library deletes the former object when this component is ready with the new object and all components
// that require this component, directly or indirectly, are ready. Until then, Pods can use the former object.
//
// More people can usually see the names of Secrets than their content. With Versioned, the name contains a hash of the
// content. Do not use Versioned for a Secret whose content can be guessed, such as a single short password.
func Versioned[T ConfigData](body func(ctx context.Context) (T, error), opts ...Option) Resource {
	return newObject("Versioned", body, opts, addContentHash)
}

// addContentHash adds a hash of the content to the name of an object, and makes the object immutable.
func addContentHash(ctx context.Context, obj *unstructured.Unstructured) error {
	n, err := getNodeRun(ctx)
	if err != nil {
		return err
	}
	content := map[string]any{}
	for _, field := range []string{"type", "data", "binaryData", "stringData"} {
		if value, found := obj.Object[field]; found {
			content[field] = value
		}
	}
	encoded, err := json.Marshal(content) // sorts the keys
	if err != nil {
		return fmt.Errorf("encode the content of %s: %w", apply.ToRef(obj), err)
	}
	base := obj.GetName()
	if base == "" {
		base = n.generateName(strings.TrimSuffix(obj.GetGenerateName(), "-"))
		obj.SetGenerateName("")
	}
	obj.SetName(base + "-" + hash(string(encoded)))
	return unstructured.SetNestedField(obj.Object, true, "immutable")
}
