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

// Object keeps one object of any kind in the target cluster. body returns the desired object in full. Fields that it
// does not set are left to the API server and to others. T is a pointer to a Go type, or *unstructured.Unstructured.
//
//	Object(func(ctx context.Context) (*appsv1.StatefulSet, error) { … })
//
// apiVersion and kind of a type that the scheme knows need not be set. A name that is not set is made of generateName
// or the component, and a hash that is the same in each run. A status of a Go type is not sent. If body returns nil,
// the item has no such object, and the component is ready. The component is ready by the rules of package
// apply/readiness, unless an option changes that, and listens to the object. An error of body fails the component.
func Object[T client.Object](body func(ctx context.Context) (T, error), opts ...Option) Resource {
	r := newObjects(opts, kindOf[T])
	if body == nil {
		r.faults = append(r.faults, "the body of Object is nil")
	}
	if of := reflect.TypeFor[T](); !r.always && r.judge == nil && !tellsReadiness(of) {
		r.faults = append(r.faults, fmt.Sprintf("the status of a %s has neither conditions nor observedGeneration, so it is not known when it is ready: use ReadyWhen, or ReadyOnceApplied", of))
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		obj, err := bodyOf(ctx, body, r.scheme)
		if err != nil || obj == nil {
			return nil, err
		}
		return []*unstructured.Unstructured{obj}, nil
	}
	return r
}

// tellsReadiness reports whether the default rules can judge objects of a Go type. They can if its status has
// conditions or observedGeneration, if it has no status, if Kubernetes itself serves the kind, or if the type does not
// define its status.
func tellsReadiness(of reflect.Type) bool {
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

// newObjects makes the common part. static finds the kind if no option announces any.
func newObjects(opts []Option, static func(*runtime.Scheme) []schema.GroupVersionKind) *objects {
	r := &objects{options: optionsOf(opts)}
	if r.kinds = r.declared; len(r.kinds) == 0 && static != nil {
		r.kinds = static(r.scheme)
	}
	return r
}

// kindOf returns the kind of T, or nil if it is not known.
func kindOf[T client.Object](s *runtime.Scheme) []schema.GroupVersionKind {
	if gvk := kindOfType(s, reflect.TypeFor[T]()); !gvk.Empty() {
		return []schema.GroupVersionKind{gvk}
	}
	return nil
}

// bodyOf calls a body and converts the result to unstructured, without what only the API server sets. It returns nil if
// there is no object.
func bodyOf[T client.Object](ctx context.Context, body func(ctx context.Context) (T, error), s *runtime.Scheme) (*unstructured.Unstructured, error) {
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

// dropNulls removes what the encoding of a Go type contains for unset fields, such as creationTimestamp.
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

// ConfigData is a kind that only carries data, and may be made immutable.
type ConfigData interface {
	*corev1.ConfigMap | *corev1.Secret
	client.Object
}

// Versioned keeps a ConfigMap or Secret that is never changed (copy-on-write). The name ends in a hash of the content,
// and the object is immutable. Another content leads to another object. Components that require this one get its name
// from Name, so their Pods are rolled. The former object is deleted when the component and all that require it,
// directly or not, are ready with the new one, so that Pods that still use it continue to work.
//
// The hash of a Secret's content is part of a name, which more people may read than the Secret. Do not use it for
// content that can be guessed, such as a short password alone.
func Versioned[T ConfigData](body func(ctx context.Context) (T, error), opts ...Option) Resource {
	r := newObjects(opts, kindOf[T])
	if body == nil {
		r.faults = append(r.faults, "the body of Versioned is nil")
	}
	r.render = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		n, err := From(ctx)
		if err != nil {
			return nil, err
		}
		obj, err := bodyOf(ctx, body, r.scheme)
		if err != nil || obj == nil {
			return nil, err
		}
		if err := n.version(obj); err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{obj}, nil
	}
	return r
}

// version adds the hash of the content to the name, and makes the object immutable.
func (n *Node) version(obj *unstructured.Unstructured) error {
	content := map[string]any{}
	for _, field := range []string{"type", "data", "binaryData", "stringData"} {
		if value, found := obj.Object[field]; found {
			content[field] = value
		}
	}
	encoded, err := json.Marshal(content) // sorts the keys
	if err != nil {
		return fmt.Errorf("encode the content of %s: %w", apply.RefOf(obj), err)
	}
	base := obj.GetName()
	if base == "" {
		base = n.nameFor(strings.TrimSuffix(obj.GetGenerateName(), "-"))
		obj.SetGenerateName("")
	}
	obj.SetName(base + "-" + hash(string(encoded)))
	return unstructured.SetNestedField(obj.Object, true, "immutable")
}
