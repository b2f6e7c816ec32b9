// SPDX-License-Identifier: Apache-2.0

package declarative

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

// Child is an observed child: an object in the target that belongs to the item. Each method returns a copy. The zero
// value is a child without any fields. A handler can therefore read fields without checking whether the child exists.
type Child struct{ object *unstructured.Unstructured }

// NewChild returns an object as a Child. The object must not be changed afterwards. Most handlers need NewChild only in
// tests.
func NewChild(object *unstructured.Unstructured) Child { return Child{object} }

// Ref returns a reference to the child. Its String method returns text such as "Deployment.apps shop/web".
func (c Child) Ref() apply.Ref { return apply.ToRef(c.content()) }

// Name returns the child's name.
func (c Child) Name() string { return c.content().GetName() }

// Labels returns the child's labels, or nil if there are none.
func (c Child) Labels() map[string]string { return c.content().GetLabels() }

// IsDeleting reports whether the child is being deleted. If the handler still returns the child, the library creates it
// again when it is gone.
func (c Child) IsDeleting() bool { return c.content().GetDeletionTimestamp() != nil }

// Raw returns the whole child as JSON, or nil for the zero value.
func (c Child) Raw() json.RawMessage {
	if c.object == nil {
		return nil
	}
	raw, _ := json.Marshal(c.object.Object) // the object came from JSON, so it can be encoded
	return raw
}

// Object returns a copy of the child, which is empty for the zero value.
func (c Child) Object() *unstructured.Unstructured { return c.content().DeepCopy() }

// GetString returns a string field of the child, such as GetString("status", "podIP"). It returns an empty string if
// the child has no string at this path.
func (c Child) GetString(fields ...string) string {
	text, _, _ := unstructured.NestedString(c.content().Object, fields...)
	return text
}

// Keep returns an element for [SyncResponse].Children that leaves the child unchanged. The element contains only the
// apiVersion, kind, namespace and name of the child.
func (c Child) Keep() map[string]any {
	ref := c.Ref()
	metadata := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		metadata["namespace"] = ref.Namespace
	}
	return map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": metadata}
}

// content returns the object itself. The caller must not change it.
func (c Child) content() *unstructured.Unstructured {
	if c.object == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return c.object
}

// As decodes a child into a T, such as corev1.Pod. It ignores fields that T does not have, and returns an error if the
// value of a field does not fit its type in T. The result is never nil.
func As[T any](c Child) (*T, error) {
	out := new(T)
	if c.object == nil {
		return out, nil
	}
	var err error
	if _, generated := any(out).(runtime.Object); generated {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(c.object.DeepCopy().Object, out)
	} else {
		err = json.Unmarshal(c.Raw(), out)
	}
	if err != nil {
		return new(T), fmt.Errorf("decode %s into %T: %w", c.Ref(), out, err)
	}
	return out, nil
}

// Children is a list of observed children. Its methods select children without copying the objects. The methods of
// Child and the function [As] return copies of the objects or of their fields.
type Children []Child

// NewChildren returns the given objects as children, ordered by kind, namespace and name. The objects must not be
// changed afterwards.
func NewChildren(objects ...*unstructured.Unstructured) Children {
	out := make(Children, 0, len(objects))
	for _, object := range objects {
		out = append(out, Child{object})
	}
	slices.SortStableFunc(out, func(a, b Child) int { return compareRefs(a.Ref(), b.Ref()) })
	return out
}

func compareRefs(a, b apply.Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Filter returns the children for which the function `keep` returns true.
func (c Children) Filter(keep func(Child) bool) Children {
	var out Children
	for _, child := range c {
		if keep(child) {
			out = append(out, child)
		}
	}
	return out
}

// FilterByKind returns the children of a kind. The argument is a plain name such as "Deployment". If several API groups
// have a kind with this name, use a qualified name such as "apps/v1/Deployment".
func (c Children) FilterByKind(kind string) Children {
	apiVersion := ""
	if slash := strings.LastIndex(kind, "/"); slash >= 0 {
		apiVersion, kind = kind[:slash], kind[slash+1:]
	}
	return c.Filter(func(child Child) bool {
		ref := child.Ref()
		return ref.Kind == kind && (apiVersion == "" || ref.APIVersion == apiVersion)
	})
}

// Find finds a child by its kind and its name. The kind has the same format as for [Children.FilterByKind]. The name is
// a plain name such as "web", or a name with a namespace such as "shop/web". With a plain name, Find returns the first
// child with this name in any namespace. If there is no such child, Find returns the zero value and false.
func (c Children) Find(kind, name string) (Child, bool) {
	namespace, plain, qualified := strings.Cut(name, "/")
	if !qualified {
		plain = name
	}
	for _, child := range c.FilterByKind(kind) {
		if child.Name() == plain && (!qualified || child.Ref().Namespace == namespace) {
			return child, true
		}
	}
	return Child{}, false
}

// FilterByLabels returns the children that a selector matches, such as labels.Set{"app": "web"}.AsSelector().
func (c Children) FilterByLabels(selector labels.Selector) Children {
	return c.Filter(func(child Child) bool { return selector.Matches(labels.Set(child.Labels())) })
}

// Find finds a child in the same way as [Children.Find], and decodes it into a T. The boolean is false if there is no
// such child or if decoding fails. In both cases, the pointer points to an empty T. The pointer is never nil.
//
//	pod, running, err := declarative.Find[corev1.Pod](req.Children, "Pod", req.Name("web"))
func Find[T any](children Children, kind, name string) (*T, bool, error) {
	child, found := children.Find(kind, name)
	out, err := As[T](child)
	return out, found && err == nil, err
}

// List decodes all children of a kind. The kind has the same format as for [Children.FilterByKind].
func List[T any](children Children, kind string) ([]*T, error) {
	var out []*T
	for _, child := range children.FilterByKind(kind) {
		one, err := As[T](child)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
