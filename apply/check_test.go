// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestErrorsHaveAFixedOrder ensures that the error for a manifest with several mistakes has the same text in each call.
// A text that changes would be stored and reported again each time.
func TestErrorsHaveAFixedOrder(t *testing.T) {
	engine := New(nil, newConfigMapMapper(), Options{})
	first := ""
	for range 50 {
		body := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ns"}}}
		_, err := engine.begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{{Object: body}}, false)
		if err == nil {
			t.Fatal("accepted")
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Fatalf("first %q, then %q", first, err)
		}
	}
}

// statusMapper is a RESTMapper for which only the kind Thing is known to have a status subresource.
type statusMapper struct{ meta.RESTMapper }

func (statusMapper) HasStatusSubresource(gvk schema.GroupVersionKind) bool {
	return gvk.Kind == "Thing"
}

func TestStatusIsNotSent(t *testing.T) {
	definition := func(subresources map[string]any) Desired {
		return Desired{Object: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": object.KindDefinition, "metadata": map[string]any{"name": "lamps.example.org"},
			"spec": map[string]any{
				"group": "example.org", "scope": "Namespaced", "names": map[string]any{"kind": "Lamp", "plural": "lamps"},
				"versions": []any{map[string]any{"name": "v1", "subresources": subresources}},
			},
			"status": map[string]any{"acceptedNames": map[string]any{"kind": "", "plural": ""}, "conditions": []any{}, "storedVersions": nil},
		}}}
	}
	full, empty := map[string]any{"phase": "On"}, map[string]any{"phase": "", "list": []any{}, "deep": map[string]any{"a": nil}}
	lamp := func(status any) Desired {
		return manifest("Lamp", "a", map[string]any{"apiVersion": "example.org/v1", "status": status})
	}
	for name, tc := range map[string]struct {
		object     Desired
		definition map[string]any
		want       any
	}{
		"of a kind of which discovery knows the status subresource [F101]": {object: manifest("Thing", "a", map[string]any{"status": full})},
		"of a kind whose definition has a status subresource [F101]":       {lamp(full), map[string]any{"status": map[string]any{}}, nil},
		"unless it is a field like any other [F101]":                       {lamp(full), map[string]any{"scale": map[string]any{}}, full},
		"if it contains no value [F101]":                                   {object: manifest("Other", "a", map[string]any{"status": empty})},
		"if it is null [F101]":                                             {lamp(nil), nil, nil},
		"unless the kind is not known to have a status subresource [F101]": {object: manifest("Other", "a", map[string]any{"status": full}), want: full},
	} {
		t.Run(name, func(t *testing.T) {
			known := meta.NewDefaultRESTMapper(nil)
			for _, kind := range []string{"Thing", "Other"} {
				known.Add(schema.GroupVersionKind{Version: "v1", Kind: kind}, meta.RESTScopeNamespace)
			}
			known.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: object.KindDefinition}, meta.RESTScopeRoot)
			run := New(nil, statusMapper{known}, Options{}).begin(ownership.Owner{UID: "item"}, Inventory{})
			objects, err := run.prepare(t.Context(), []Desired{definition(tc.definition), tc.object}, false)
			if err != nil {
				t.Fatal(err)
			}
			if _, found := objects[0].Object.Object["status"]; found {
				t.Error("the definition has a status")
			}
			if diff := cmp.Diff(tc.want, objects[1].Object.Object["status"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestErrorIsOneLine ensures that an error is one line, even if a name in the manifest contains line breaks.
func TestErrorIsOneLine(t *testing.T) {
	err := &Error{Ref: Ref{APIVersion: "v1", Kind: "Secret\n", Namespace: "a\rb", Name: "c"}, Path: ".metadata.labels.x\n", Message: "is\nbad"}
	if want := "Secret a b/c: .metadata.labels.x : is bad"; err.Error() != want {
		t.Errorf("want %q, got %q", want, err)
	}
}
