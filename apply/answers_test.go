// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestIsImmutable(t *testing.T) {
	path := field.NewPath("spec", "x")
	for text, c := range map[string]struct {
		err  *field.Error
		want bool
	}{
		"recognizes a field that is immutable [F104]":                         {field.Invalid(path, "a", "field is immutable"), true},
		"recognizes a field that cannot be modified once set [F104]":          {field.Invalid(path, "a", "field cannot be modified once set"), true},
		"recognizes a field that may not be changed in an update [F104]":      {field.Forbidden(path, "may not be changed in an update."), true},
		"recognizes a field that may not be updated [F104]":                   {field.Forbidden(path, "may not be updated"), true},
		"recognizes a field that can not be modified [F104]":                  {field.Forbidden(path, "existing toleration can not be modified except its tolerationSeconds"), true},
		"recognizes a field that may not change once set [F104]":              {field.Invalid(path, []string{"10.0.0.1"}, "may not change once set"), true},
		"recognizes a reference that cannot change [F104]":                    {field.Invalid(path, map[string]string{"a": "b"}, "cannot change roleRef"), true},
		"recognizes updates that are forbidden [F104]":                        {field.Forbidden(path, "updates to provisioner are forbidden."), true},
		"recognizes updates that may not modify a field [F104]":               {field.Forbidden(path, "updates may not modify existing certificate content"), true},
		"recognizes an update from a value that is forbidden [F104]":          {field.Forbidden(path, "update from non-nil value to nil is forbidden"), true},
		"takes no quoted value for the message [F104]":                        {field.Invalid(path, "this is immutable", "must be a number"), false},
		"takes no quoted key for the message [F104]":                          {field.Duplicate(path, "updates to a"), false},
		"takes no field that must be omitted for an immutable field [F104]":   {field.Forbidden(path, "may not be specified when strategy `type` is 'Recreate'"), false},
		"takes no field that must have a value for an immutable field [F104]": {field.Required(path, "must be set"), false},
	} {
		t.Run(text, func(t *testing.T) {
			err := apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", field.ErrorList{c.err})
			if got := isImmutable(err); got != c.want {
				t.Errorf("isImmutable(%v) = %v", err, got)
			}
		})
	}
}

func TestContains(t *testing.T) {
	body := map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": "b"}}, "text": "x", "null": nil}, "data": map[string]any{"a/b": "c"}}
	for path, want := range map[string]bool{
		"spec": true, "spec.text": true, "spec.null": true, "data[a/b]": true, "spec.list[0].other": true,
		"spec.other": false, "spec.text.below": false, "spec.null.below": false, "data[b]": false,
	} {
		if got := contains(body, path); got != want {
			t.Errorf("contains(%q) = %v [F104]", path, got)
		}
	}
}

// TestStrictRequests checks which requests are strict, and that an unknown field of the object in the cluster does not
// prevent a write.
func TestStrictRequests(t *testing.T) {
	want := desiredMap(Manage, Update)
	for name, c := range map[string]struct {
		unknown string // a field that the API server does not know
		step    step
		sent    []string // the field validation of each request
		fails   bool
	}{
		"a creation is strict [F104]":                    {"data.key", step{effect: effectCreate, known: known{want: want}}, []string{"Strict"}, true},
		"an update is strict about the manifest [F104]":  {"data.key", step{effect: effectUpdate, known: known{want: want}}, []string{"Strict"}, true},
		"an update is lenient about other fields [F104]": {"data.old", step{effect: effectUpdate, known: known{want: want}}, []string{"Strict", "Ignore"}, false},
		"a patch is strict about the manifest [F104]":    {"data.key", step{effect: effectPatch, strict: true, known: known{want: want}}, []string{"Strict"}, true},
		"a patch is lenient about other fields [F104]":   {"data.old", step{effect: effectPatch, strict: true, known: known{want: want}}, []string{"Strict", "Ignore"}, false},
		"a patch before a deletion is lenient [F104]":    {"data.key", step{effect: effectMerge}, []string{""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			answer := func(validation string) error {
				sent = append(sent, validation)
				if validation == metav1.FieldValidationStrict {
					return apierrors.NewBadRequest(`strict decoding error: unknown field "` + c.unknown + `"`)
				}
				return nil
			}
			fake := interceptor.NewClient(nil, interceptor.Funcs{
				Create: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.CreateOption) error {
					return answer((&client.CreateOptions{}).ApplyOptions(opts).FieldValidation)
				},
				Update: func(_ context.Context, _ client.WithWatch, _ client.Object, opts ...client.UpdateOption) error {
					return answer((&client.UpdateOptions{}).ApplyOptions(opts).FieldValidation)
				},
				Patch: func(_ context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, opts ...client.PatchOption) error {
					return answer((&client.PatchOptions{}).ApplyOptions(opts).FieldValidation)
				},
			})
			c.step.body = want.Object.DeepCopy()
			_, err := cluster{client: fake}.send(t.Context(), c.step)
			if diff := cmp.Diff(c.sent, sent); diff != "" || (err != nil) != c.fails {
				t.Errorf("error %v, requests (-want +got):\n%s", err, diff)
			}
		})
	}
}
