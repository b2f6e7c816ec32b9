// SPDX-License-Identifier: Apache-2.0

package deletion

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestText(t *testing.T) {
	object := func(kind string, finalizers []any, more map[string]any) *unstructured.Unstructured {
		out := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a", "finalizers": finalizers}}
		maps.Copy(out, more)
		return &unstructured.Unstructured{Object: out}
	}
	condition := func(kind, status, message string) map[string]any {
		return map[string]any{"type": kind, "status": status, "message": message}
	}
	spec := map[string]any{"finalizers": []any{"kubernetes"}}
	status := func(conditions ...any) map[string]any { return map[string]any{"conditions": conditions} }
	many := make([]any, 20)
	for i := range many {
		many[i] = strings.Repeat("x", 300)
	}
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want string
	}{
		"the text without finalizers":         {object("ConfigMap", nil, nil), "is being deleted"},
		"the text names the finalizers [F79]": {object("ConfigMap", []any{"a/b", "c/d"}, nil), "is being deleted, held by finalizers a/b, c/d"},
		"the text ignores finalizers in the spec of other kinds": {
			object("ConfigMap", nil, map[string]any{"spec": spec, "status": status(condition("NamespaceContentRemaining", "True", "x"))}), "is being deleted",
		},
		"the text names the finalizers in the spec of a Namespace [F104]": {object("Namespace", []any{"a/b"}, map[string]any{"spec": spec}), "is being deleted, held by finalizers a/b, kubernetes"},
		"the text names the finalizers of objects in a Namespace [F104]": {
			object("Namespace", nil, map[string]any{"spec": spec, "status": status(
				condition("NamespaceContentRemaining", "True", "configmaps. has 1 resource instances"),
				condition("NamespaceDeletionContentFailure", "False", "all content deleted"),
				condition("NamespaceFinalizersRemaining", "True", "example.org/held in 1 resource instances"),
			)}), "is being deleted, held by finalizers kubernetes: example.org/held in 1 resource instances",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Format(tc.obj); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	t.Run("the text limits the number and the length of names [F79]", func(t *testing.T) {
		if text := Format(object("ConfigMap", many, nil)); len(text) > 1100 {
			t.Errorf("the text has %d bytes", len(text))
		}
	})
	if ListFinalizers(nil) != nil {
		t.Error("nil has finalizers")
	}
}
