// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// TestPatchesKeepTheMarks ensures that no patch of a user removes the owner's labels and annotations from an object.
func TestPatchesKeepTheMarks(t *testing.T) {
	patches := map[string]struct {
		metadata any
		path     string
	}{
		"a patch that sets the labels to null is rejected [F10]":       {map[string]any{"labels": nil}, ".metadata.labels"},
		"a patch that sets the annotations to null is rejected [F10]":  {map[string]any{"annotations": nil}, ".metadata.annotations"},
		"a patch that replaces the labels by a list is rejected [F10]": {map[string]any{"labels": []any{}}, ".metadata.labels"},
		"a patch that sets the metadata to null is rejected [F10]":     {nil, ".metadata"},
		"a patch that removes the owner label is rejected [F10]":       {map[string]any{"labels": map[string]any{ownership.LabelItem: nil}}, ".metadata.labels." + ownership.LabelItem},
		"a patch that changes an owner annotation is rejected [F10]":   {map[string]any{"annotations": map[string]any{ownership.AnnotationName: "x"}}, ".metadata.annotations." + ownership.AnnotationName},
		"a patch that contains managed fields is rejected [F10]":       {map[string]any{"managedFields": []any{map[string]any{}}}, ".metadata.managedFields"},
		"a patch that removes a label of the user is accepted":         {map[string]any{"labels": map[string]any{"app": nil}}, ""},
	}
	for name, tc := range patches {
		for _, when := range []string{"patchAfterDeployment", "patchBeforeDelete"} {
			t.Run(name+", "+when, func(t *testing.T) {
				d := Desired{Object: &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "a"},
				}}}
				patch := map[string]any{"metadata": tc.metadata}
				if d.PatchAfterDeployment = patch; when == "patchBeforeDelete" {
					d.PatchAfterDeployment, d.PatchBeforeDelete = nil, patch
				}
				_, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{d}, false)
				if (err == nil) != (tc.path == "") {
					t.Fatalf("got %v", err)
				}
				if err != nil && (!strings.Contains(err.Error(), when+tc.path+":") || GetClass(err) != ClassPermanent) {
					t.Errorf("want a permanent error at %s, got %v", when+tc.path, err)
				}
			})
		}
	}
}

// TestNullMetadataIsMarked checks that the owner's labels are added to a manifest in which labels is null.
func TestNullMetadataIsMarked(t *testing.T) {
	t.Run("null labels and annotations [F10]", func(t *testing.T) {
		body := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "ns", "name": "a", "labels": nil, "annotations": nil},
		}}
		objects, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item", Name: "n"}, Inventory{}).prepare(t.Context(), []Desired{{Object: body}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if owner, owned := ownership.GetOwner(objects[0].Object); !owned || owner.UID != "item" || owner.Name != "n" {
			t.Errorf("the object has the marks of %+v", owner)
		}
	})
}
