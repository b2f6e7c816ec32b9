// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

var testOwner = ownership.Owner{UID: "4f1e", Landscape: "9c02", Namespace: "shop", Name: strings.Repeat("web", 60)}

func TestMark(t *testing.T) {
	ours := map[string]any{
		ownership.AnnotationLandscape: "9c02", ownership.AnnotationNamespace: "shop", ownership.AnnotationName: testOwner.Name,
	}
	cases := map[string]struct {
		reason string
		obj    map[string]any
		want   map[string]any
	}{
		"Bare": {
			reason: "labels and annotations are created",
			obj:    map[string]any{"kind": "ConfigMap"},
			want: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{
				"labels": map[string]any{ownership.LabelItem: "4f1e"}, "annotations": ours,
			}},
		},
		"KeepsOthers": {
			reason: "an invalid label is kept, so that the API server rejects it",
			obj:    map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b", "n": int64(1), ownership.LabelItem: "else"}}},
			want: map[string]any{"metadata": map[string]any{
				"labels": map[string]any{"a": "b", "n": int64(1), ownership.LabelItem: "4f1e"}, "annotations": ours,
			}},
		},
		"LabelsAreNoMap": {
			reason: "invalid metadata is kept, so that the API server rejects it",
			obj:    map[string]any{"metadata": map[string]any{"labels": "x"}},
			want:   map[string]any{"metadata": map[string]any{"labels": "x", "annotations": ours}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			testOwner.Mark(&unstructured.Unstructured{Object: tc.obj})
			if diff := cmp.Diff(tc.want, tc.obj); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGetOwner(t *testing.T) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	if got, ok := ownership.GetOwner(obj); ok {
		t.Errorf("an object without our label belongs to %v", got)
	}
	testOwner.Mark(obj)
	got, ok := ownership.GetOwner(obj)
	if diff := cmp.Diff(testOwner, got); diff != "" || !ok {
		t.Errorf("Stamp and OwnerOf differ (%v, -want +got):\n%s", ok, diff)
	}
	obj.SetAnnotations(nil)
	got, ok = ownership.GetOwner(obj)
	if diff := cmp.Diff(ownership.Owner{UID: "4f1e"}, got); diff != "" || !ok {
		t.Errorf("without annotations (%v, -want +got):\n%s", ok, diff)
	}
}

func TestIsSameItem(t *testing.T) {
	with := func(change func(*ownership.Owner)) ownership.Owner {
		o := testOwner
		change(&o)
		return o
	}
	cases := map[string]struct {
		a, b ownership.Owner
		want bool
	}{
		"Itself":           {testOwner, testOwner, true},
		"OtherLife":        {testOwner, with(func(o *ownership.Owner) { o.UID = "new" }), true},
		"UIDWithoutNames":  {testOwner, ownership.Owner{UID: "4f1e"}, true},
		"RenamedNamespace": {testOwner, with(func(o *ownership.Owner) { o.UID = "new"; o.Namespace = "other" }), false},
		"OtherName":        {testOwner, with(func(o *ownership.Owner) { o.UID = "new"; o.Name = "other" }), false},
		"OtherLandscape":   {testOwner, with(func(o *ownership.Owner) { o.UID = "new"; o.Landscape = "other" }), false},
		"AliasOfTheLandscape [F58]": {
			with(func(o *ownership.Owner) { o.LandscapeAlias = "server-1" }),
			with(func(o *ownership.Owner) { o.UID = "new"; o.Landscape = "server-1" }), true,
		},
		"AliasOfAnotherLandscape [F58]": {
			with(func(o *ownership.Owner) { o.LandscapeAlias = "server-1" }),
			with(func(o *ownership.Owner) { o.UID = "new"; o.Landscape = "server-2" }), false,
		},
		"NothingKnown":        {ownership.Owner{}, ownership.Owner{}, false},
		"NeitherHasLandscape": {ownership.Owner{UID: "1", Namespace: "n", Name: "x"}, ownership.Owner{UID: "2", Namespace: "n", Name: "x"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.a.IsSameItem(tc.b); got != tc.want {
				t.Errorf("a, b: got %v, want %v", got, tc.want)
			}
			if got := tc.b.IsSameItem(tc.a); got != tc.want {
				t.Errorf("b, a: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestOwnerNames(t *testing.T) {
	got := []string{testOwner.FieldManager(), testOwner.PatchFieldManager(), ownership.Owner{Namespace: "n", Name: "x"}.String(), ownership.Owner{UID: "1"}.String()}
	want := []string{"deployerkit-4f1e", "deployerkit-4f1e-patch", "n/x", "item 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIsReserved(t *testing.T) {
	for key, want := range map[string]bool{
		"deployerkit.dev/item": true, "deployerkit.dev/anything": true,
		"deployerkit.dev": false, "sub.deployerkit.dev/y": false, "app": false,
	} {
		if got := ownership.IsReserved(key); got != want {
			t.Errorf("%s: got %v, want %v", key, got, want)
		}
	}
}
