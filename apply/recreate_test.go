// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

func TestDiffer(t *testing.T) {
	type object = map[string]any
	live := object{
		"kind": "ConfigMap", "data": object{"key": "1"}, "status": object{"x": "y"},
		"metadata": object{"name": "a", "resourceVersion": "1", "labels": object{ownership.LabelItem: "u", "app": "x"}, "annotations": object{ownership.AnnotationName: "n"}},
	}
	for name, tc := range map[string]struct {
		more object
		want bool
	}{
		"same":             {nil, false},
		"field":            {object{"data": object{"key": "2"}}, true},
		"new field":        {object{"data": object{"more": "2"}}, true},
		"label":            {object{"metadata": object{"labels": object{"app": "y"}}}, true},
		"owner":            {object{"metadata": object{"labels": object{ownership.LabelItem: "v"}}}, false},
		"names":            {object{"metadata": object{"annotations": object{ownership.AnnotationName: "m", ownership.AnnotationNamespace: "m"}}}, false},
		"other annotation": {object{"metadata": object{"annotations": object{"example.org/a": "m"}}}, true},
		"server's fields":  {object{"status": object{"x": "z"}, "metadata": object{"resourceVersion": "2", "generation": int64(2), "managedFields": []any{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &unstructured.Unstructured{Object: jsondiff.Overlay(live, nil)}
			b := &unstructured.Unstructured{Object: jsondiff.Overlay(live, tc.more)}
			before := b.DeepCopy()
			if differ(a, b) != tc.want || differ(b, a) != tc.want {
				t.Errorf("want %v", tc.want)
			}
			if diff := cmp.Diff(before.Object, b.Object); diff != "" {
				t.Error("an argument was changed", diff)
			}
		})
	}
	t.Run("no labels at all", func(t *testing.T) {
		bare := &unstructured.Unstructured{Object: object{"kind": "ConfigMap", "metadata": object{"name": "a"}}}
		marked := bare.DeepCopy()
		ownership.Owner{UID: "u", Name: "n"}.Stamp(marked)
		if differ(bare, marked) || differ(marked, bare) {
			t.Error("marks are no difference")
		}
	})
}

// TestHashOfStrategies checks that a change between two strategies that use server-side apply does not change the hash.
// A different hash would recreate the object.
func TestHashOfStrategies(t *testing.T) {
	hashes := map[string][]Strategy{}
	for _, strategy := range []Strategy{Apply, Recreate, OnDelete, Update} {
		d := manifest("ConfigMap", "a", nil)
		d.Strategy = strategy
		objects, err := New(nil, configMaps(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), []Desired{d}, false)
		if err != nil {
			t.Fatal(err)
		}
		hashes[objects[0].hash] = append(hashes[objects[0].hash], strategy)
	}
	if len(hashes) != 2 {
		t.Error(hashes)
	}
}

func TestWithoutDryRun(t *testing.T) {
	if !isWithoutDryRun(apierrors.NewBadRequest(`admission webhook "x" does not support dry run`)) {
		t.Error("a webhook without dry run was not told")
	}
	if isWithoutDryRun(apierrors.NewBadRequest("the manifest is wrong")) || isWithoutDryRun(nil) {
		t.Error("any fault is taken for a webhook without dry run")
	}
}

func TestStagesKeepTheOrder(t *testing.T) {
	desired := []Desired{manifest("ConfigMap", "z", nil), manifest("ConfigMap", "a", nil), manifest("ConfigMap", "m", nil)}
	t.Run("within a stage [Rx2]", func(t *testing.T) {
		objects, err := New(nil, configMaps(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), desired, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, stage := range stages(objects) {
			for _, o := range stage {
				got = append(got, o.ref.Name)
			}
		}
		if diff := cmp.Diff([]string{"z", "a", "m"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
