// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/apply/internal/decide"
)

func TestHasField(t *testing.T) {
	body := map[string]any{"spec": map[string]any{"list": []any{map[string]any{"a": "b"}}, "text": "x", "null": nil}, "data": map[string]any{"a/b": "c"}}
	for path, want := range map[string]bool{
		"spec": true, "spec.text": true, "spec.null": true, "data[a/b]": true, "spec.list[0].other": true,
		"spec.other": false, "spec.text.below": false, "spec.null.below": false, "data[b]": false,
	} {
		if got := hasField(body, path); got != want {
			t.Errorf("hasField(%q) = %v [F104]", path, got)
		}
	}
}

// TestSendStrictly checks which requests are strict, and that an unknown field of the object in the cluster does not
// prevent a write.
func TestSendStrictly(t *testing.T) {
	d := manifest("ConfigMap", "a", map[string]any{"data": map[string]any{"key": "1"}})
	known := decide.Facts{Manifest: &decide.Manifest{Ref: ToRef(d.Object), Object: d.Object}}
	for name, c := range map[string]struct {
		unknown string // a field that the API server does not know
		step    decide.Step
		sent    []string // the field validation of each request
		fails   bool
	}{
		"a creation is strict [F104]":                    {"data.key", decide.Step{Request: decide.Request{Effect: decide.EffectCreate}, Facts: known}, []string{"Strict"}, true},
		"an update is strict about the manifest [F104]":  {"data.key", decide.Step{Request: decide.Request{Effect: decide.EffectUpdate}, Facts: known}, []string{"Strict"}, true},
		"an update is lenient about other fields [F104]": {"data.old", decide.Step{Request: decide.Request{Effect: decide.EffectUpdate}, Facts: known}, []string{"Strict", "Ignore"}, false},
		"a patch is strict about the manifest [F104]":    {"data.key", decide.Step{Request: decide.Request{Effect: decide.EffectPatch, Strict: true}, Facts: known}, []string{"Strict"}, true},
		"a patch is lenient about other fields [F104]":   {"data.old", decide.Step{Request: decide.Request{Effect: decide.EffectPatch, Strict: true}, Facts: known}, []string{"Strict", "Ignore"}, false},
		"a patch before a deletion is lenient [F104]":    {"data.key", decide.Step{Request: decide.Request{Effect: decide.EffectMerge}}, []string{""}, false},
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
			c.step.Body = d.Object.DeepCopy()
			_, err := cluster{client: fake}.send(t.Context(), c.step)
			if diff := cmp.Diff(c.sent, sent); diff != "" || (err != nil) != c.fails {
				t.Errorf("error %v, requests (-want +got):\n%s", err, diff)
			}
		})
	}
}
