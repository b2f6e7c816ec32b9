// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/deployerkit/deployerkit/apply/internal/object"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

func TestIsDifferent(t *testing.T) {
	type object = map[string]any
	live := object{
		"kind": "ConfigMap", "data": object{"key": "1"}, "status": object{"x": "y"},
		"metadata": object{"name": "a", "resourceVersion": "1", "labels": object{ownership.LabelItem: "u", "app": "x"}, "annotations": object{ownership.AnnotationName: "n"}},
	}
	for name, tc := range map[string]struct {
		more object
		want bool
	}{
		"equal objects do not differ":                       {nil, false},
		"another value of a field is a difference":          {object{"data": object{"key": "2"}}, true},
		"a new field is a difference":                       {object{"data": object{"more": "2"}}, true},
		"another label is a difference":                     {object{"metadata": object{"labels": object{"app": "y"}}}, true},
		"the owner label is no difference":                  {object{"metadata": object{"labels": object{ownership.LabelItem: "v"}}}, false},
		"the owner annotations are no difference":           {object{"metadata": object{"annotations": object{ownership.AnnotationName: "m", ownership.AnnotationNamespace: "m"}}}, false},
		"another annotation is a difference":                {object{"metadata": object{"annotations": object{"example.org/a": "m"}}}, true},
		"fields that the API server sets are no difference": {object{"status": object{"x": "z"}, "metadata": object{"resourceVersion": "2", "generation": int64(2), "managedFields": []any{}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := &unstructured.Unstructured{Object: jsondiff.MergeOverlay(live, nil)}
			b := &unstructured.Unstructured{Object: jsondiff.MergeOverlay(live, tc.more)}
			before := b.DeepCopy()
			if isDifferent(a, b) != tc.want || isDifferent(b, a) != tc.want {
				t.Errorf("want %v", tc.want)
			}
			if diff := cmp.Diff(before.Object, b.Object); diff != "" {
				t.Error("an argument was changed", diff)
			}
		})
	}
	t.Run("the owner label of an object without labels is no difference", func(t *testing.T) {
		bare := &unstructured.Unstructured{Object: object{"kind": "ConfigMap", "metadata": object{"name": "a"}}}
		marked := bare.DeepCopy()
		ownership.Owner{UID: "u", Name: "n"}.Mark(marked)
		if isDifferent(bare, marked) || isDifferent(marked, bare) {
			t.Error("marks are no difference")
		}
	})
}

// TestPlaceholdersOfDryRun checks that a dry run whose answer requires a placeholder is repeated as a dry run.
func TestPlaceholdersOfDryRun(t *testing.T) {
	t.Run("a dry run that needs the placeholder of a certificate stays a dry run [F97]", func(t *testing.T) {
		secret := func(value string) *unstructured.Unstructured {
			return &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "metadata": map[string]any{"namespace": "shop", "name": "a"},
				"data": map[string]any{"tls.crt": value},
			}}
		}
		manifest := newManifest("recreate", func(m *Manifest) { m.Object = secret(""); m.Ref = object.ToRef(m.Object) })
		live := secret("YQ==")
		live.SetUID("u")
		testOwner.Mark(live)
		f := Facts{Record: object.Record{Entry: newEntry("u", "x")}, Manifest: manifest}
		f.Kind, f.Fingerprint = "Secret", "k"
		required := apierrors.NewInvalid(manifest.Ref.GVK().GroupKind(), "a", field.ErrorList{field.Required(field.NewPath("data").Key("tls.crt"), "")})
		s := Write(newRules(), f).HandleResponse(newRules(), Response{Live: live})
		first := formatStep(s)
		s = s.HandleResponse(newRules(), Response{Err: required})
		if want := "apply forced dry of u"; first != want || formatStep(s) != want {
			t.Errorf("got %q, then %q, want %q twice", first, formatStep(s), want)
		}
		if _, found, _ := unstructured.NestedString(s.Body.Object, "data", "tls.crt"); !found {
			t.Errorf("the second request lacks the placeholder: %v", s.Body)
		}
	})
}
