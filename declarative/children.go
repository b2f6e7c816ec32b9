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

// Child is one observed child, as it is in the target. Each method gives out a copy. The zero value is a child without
// any fields, for those who do not care whether one exists.
type Child struct{ object *unstructured.Unstructured }

// NewChild makes a child of an object, which must not be changed any more. Most need this only in tests.
func NewChild(object *unstructured.Unstructured) Child { return Child{object} }

// Ref names the child; its String is for people: "Deployment.apps shop/web".
func (c Child) Ref() apply.Ref { return apply.RefOf(c.content()) }

// Name is the child's name.
func (c Child) Name() string { return c.content().GetName() }

// Labels are the child's labels; nil: none.
func (c Child) Labels() map[string]string { return c.content().GetLabels() }

// Deleting tells that the child is being deleted. It is created again when it is gone, if it is still returned.
func (c Child) Deleting() bool { return c.content().GetDeletionTimestamp() != nil }

// Raw is the whole child as JSON; nil for the zero value.
func (c Child) Raw() json.RawMessage {
	if c.object == nil {
		return nil
	}
	raw, err := json.Marshal(c.object.Object)
	if err != nil {
		return nil // cannot be: it came as JSON
	}
	return raw
}

// Object is a copy of the child; empty for the zero value.
func (c Child) Object() *unstructured.Unstructured { return c.content().DeepCopy() }

// Text is a text in the child: Text("status", "podIP"). Empty when the child has none there.
func (c Child) Text(fields ...string) string {
	text, _, _ := unstructured.NestedString(c.content().Object, fields...)
	return text
}

// Keep is a child that leaves this one as it is, for [SyncResponse].Children: its apiVersion, kind, namespace and
// name, without any other field.
func (c Child) Keep() map[string]any {
	ref := c.Ref()
	metadata := map[string]any{"name": ref.Name}
	if ref.Namespace != "" {
		metadata["namespace"] = ref.Namespace
	}
	return map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": metadata}
}

// content is the object; it must not be changed.
func (c Child) content() *unstructured.Unstructured {
	if c.object == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return c.object
}

// As decodes a child into T, such as corev1.Pod. Fields that T does not know are left out. Errors: a field is of
// another type.
func As[T any](c Child) (*T, error) {
	out := new(T)
	if c.object == nil {
		return out, nil
	}
	if _, generated := any(out).(runtime.Object); generated {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.object.DeepCopy().Object, out); err != nil {
			return new(T), fmt.Errorf("decode %s into %T: %w", c.Ref(), out, err)
		}
		return out, nil
	}
	if err := json.Unmarshal(c.Raw(), out); err != nil {
		return new(T), fmt.Errorf("decode %s into %T: %w", c.Ref(), out, err)
	}
	return out, nil
}

// Children are observed children. Range over them, or pick some; nothing is copied before [As] or a method of Child
// is called.
type Children []Child

// NewChildren orders objects by kind, namespace and name. They must not be changed any more.
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

// Where picks the children for which keep is true.
func (c Children) Where(keep func(Child) bool) Children {
	var out Children
	for _, child := range c {
		if keep(child) {
			out = append(out, child)
		}
	}
	return out
}

// OfKind picks the children of a kind: "Deployment", or "apps/v1/Deployment" where kinds of several groups share
// a name.
func (c Children) OfKind(kind string) Children {
	apiVersion := ""
	if slash := strings.LastIndex(kind, "/"); slash >= 0 {
		apiVersion, kind = kind[:slash], kind[slash+1:]
	}
	return c.Where(func(child Child) bool {
		ref := child.Ref()
		return ref.Kind == kind && (apiVersion == "" || ref.APIVersion == apiVersion)
	})
}

// Named finds the child of a kind (as in [Children.OfKind]) with a name: "web", or "shop/web" with its namespace. A name
// alone finds the first such child of all namespaces. If there is none, Named returns the zero value and false.
func (c Children) Named(kind, name string) (Child, bool) {
	namespace, name, qualified := cutNamespace(name)
	for _, child := range c.OfKind(kind) {
		if child.Name() == name && (!qualified || child.Ref().Namespace == namespace) {
			return child, true
		}
	}
	return Child{}, false
}

// cutNamespace splits "namespace/name". qualified reports whether there is a namespace.
func cutNamespace(of string) (namespace, name string, qualified bool) {
	if namespace, name, qualified = strings.Cut(of, "/"); qualified {
		return namespace, name, true
	}
	return "", of, false
}

// Labelled picks the children that a selector matches: labels.Set{"app": "web"}.AsSelector().
func (c Children) Labelled(selector labels.Selector) Children {
	return c.Where(func(child Child) bool { return selector.Matches(labels.Set(child.Labels())) })
}

// Find decodes the child of a kind with a name, both as in [Children.Named]. It never returns nil: without such a child,
// which false tells, and after an error T is empty.
//
//	pod, running, err := declarative.Find[corev1.Pod](req.Children, "Pod", req.Name("web"))
func Find[T any](children Children, kind, name string) (*T, bool, error) {
	child, found := children.Named(kind, name)
	out, err := As[T](child)
	return out, found && err == nil, err
}

// List decodes all children of a kind (as in [Children.OfKind]).
func List[T any](children Children, kind string) ([]*T, error) {
	var out []*T
	for _, child := range children.OfKind(kind) {
		one, err := As[T](child)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}
