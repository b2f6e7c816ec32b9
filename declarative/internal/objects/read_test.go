// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// named is the kind, the name and the place of an object.
type named struct{ Kind, Name, Place string }

func TestRead(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	const text = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`
	for name, tc := range map[string]struct {
		in   any
		want []named
	}{
		"a pointer":                              {&pod, []named{{"Pod", "p", ""}}},
		"a struct":                               {pod, []named{{"Pod", "p", ""}}},
		"a slice":                                {[]any{pod, &pod, text}, []named{{"Pod", "p", "[0]"}, {"Pod", "p", "[1]"}, {"Pod", "p", "[2]"}}},
		"an array":                               {[1]corev1.Pod{pod}, []named{{"Pod", "p", "[0]"}}},
		"lists in lists":                         {[]any{[]any{text}, `{"kind":"List","items":[` + text + `]}`}, []named{{"Pod", "p", "[0]"}, {"Pod", "p", "[1]"}}},
		"a typed list [F102]":                    {&corev1.PodList{Items: []corev1.Pod{pod, pod}}, []named{{"Pod", "p", "[0]"}, {"Pod", "p", "[1]"}}},
		"a typed list with a kind [F102]":        {corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{pod}}, []named{{"Pod", "p", "[0]"}}},
		"a list whose items have no kind [F102]": {`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"p"}}]}`, []named{{"Pod", "p", "[0]"}}},
		"a list in a list in a slice [F102]":     {[]any{text, `{"kind":"List","items":[{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"name":"p"}}]},` + text + `]}`}, []named{{"Pod", "p", "[0]"}, {"Pod", "p", "[1]"}, {"Pod", "p", "[2]"}}},
		"a kind without the suffix List is not a list [F102]": {`{"kind":"List","items":[{"kind":"Menu","metadata":{"name":"m"},"items":[1]}]}`, []named{{"Menu", "m", "[0]"}}},
		"an object with items is not a list":                  {`{"kind":"Menu","metadata":{"name":"m"},"items":[1]}`, []named{{"Menu", "m", ""}}},
		"JSON after white space":                              {" \n" + text, []named{{"Pod", "p", ""}}},
		"one document":                                        {"---\n" + text + "\n---\n", []named{{"Pod", "p", ""}}},
		"an UnstructuredList":                                 {&unstructured.UnstructuredList{Object: map[string]any{"kind": "PodList", "apiVersion": "v1"}, Items: []unstructured.Unstructured{{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "p"}}}}}, []named{{"Pod", "p", "[0]"}}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Read(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			got := []named{}
			for _, one := range all {
				one.FillKind(nil, func(schema.GroupVersionKind) bool { return false })
				object := unstructured.Unstructured{Object: one.Body}
				got = append(got, named{object.GetKind(), object.GetName(), one.Place})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestReadErrorsHideValues(t *testing.T) {
	for name, tc := range map[string]struct {
		in   any
		want string
	}{
		"a key that occurs twice":          {"a: SECRET\na: SECRET", "is not valid YAML: line 2"},
		"invalid YAML":                     {"a: b: SECRET", "is not valid YAML: syntax error"},
		"an element that is not an object": {[]any{"SECRET"}, "[0]: is not a JSON object"},
		"an item that is not an object":    {`{"kind":"List","items":["SECRET"]}`, "items[0] must be an object"},
		"nil":                              {nil, "is nil"},
		"a nil pointer":                    {(*corev1.Pod)(nil), "is nil"},
		"an element that is nil":           {[]*corev1.Pod{nil}, "[0]: is nil"},
		"an empty text":                    {json.RawMessage(nil), "is empty"},
		"a type that cannot be encoded":    {func() {}, "value of type func() cannot be encoded"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Read(tc.in); err == nil || err.Error() != tc.want {
				t.Errorf("got %v, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestFillKind(t *testing.T) {
	types := runtime.NewScheme()
	for _, version := range []string{"v1", "v2"} {
		types.AddKnownTypeWithName(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Own"}, &corev1.Pod{})
	}
	for name, tc := range map[string]struct {
		in     any
		prefer string
		want   string
	}{
		"the first version of the scheme": {&corev1.Pod{}, "", "example.com/v1, Kind=Own"},
		"the preferred version":           {&corev1.Pod{}, "v2", "example.com/v2, Kind=Own"},
		"the kind of the object itself":   {&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}, "v2", "/v1, Kind=Pod"},
		"an unknown type":                 {&corev1.Service{}, "", "/, Kind="},
		"an object without a Go type":     {map[string]any{}, "v2", "/, Kind="},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := Read(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			all[0].FillKind(types, func(gvk schema.GroupVersionKind) bool { return gvk.Version == tc.prefer })
			object := unstructured.Unstructured{Object: all[0].Body}
			if got := object.GroupVersionKind().String(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
