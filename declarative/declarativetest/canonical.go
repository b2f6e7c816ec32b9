// SPDX-License-Identifier: Apache-2.0

package declarativetest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// content contains those methods of *unstructured.Unstructured that canonical calls.
type content interface {
	GroupVersionKind() schema.GroupVersionKind
	UnstructuredContent() map[string]any
}

// normalize changes the values in an object of a built-in kind to the form in which an API server returns them. For
// example, the quantity 0.5 becomes 500m. The function neither adds nor removes fields. A value that is not an
// unstructured object, or that cannot be converted to its Go type, stays unchanged.
func normalize(value any) {
	object, ok := value.(content)
	if !ok {
		return
	}
	typed, err := scheme.Scheme.New(object.GroupVersionKind())
	if err != nil {
		return
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.UnstructuredContent(), typed); err != nil {
		return
	}
	if body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed); err == nil {
		rewrite(object.UnstructuredContent(), body)
	}
}

// rewrite replaces each scalar in `value` by the scalar at the same path in `form`, and returns the result. If `form`
// has no scalar at this path, the scalar stays unchanged.
func rewrite(value, form any) any {
	switch v := value.(type) {
	case map[string]any:
		forms, _ := form.(map[string]any)
		for key, below := range v {
			if as, found := forms[key]; found {
				v[key] = rewrite(below, as)
			}
		}
		return v
	case []any:
		if forms, _ := form.([]any); len(forms) == len(v) {
			for i := range v {
				v[i] = rewrite(v[i], forms[i])
			}
		}
		return v
	case nil:
		return nil
	}
	switch form.(type) {
	case nil, map[string]any, []any:
		return value
	}
	return form
}
