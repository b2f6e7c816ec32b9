// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestContext(t *testing.T) {
	if got := FromContext(t.Context()); got != nil {
		t.Errorf("got a patch from a context without a patch: %v", got)
	}
	p := &Patch{}
	if got := FromContext(NewContext(t.Context(), p)); got != p {
		t.Errorf("got another patch: %v", got)
	}
}

func TestPatchTake(t *testing.T) {
	p := &Patch{}
	p.Labels().Set("a", "b")
	p.Append(func(body map[string]any) error { body["x"] = "y"; return nil })
	p.Spec().Set("bad", make(chan int))
	taken := p.MoveToNew()
	if !p.IsEmpty() {
		t.Error("the patch is not empty after Take")
	}
	if _, err := taken.ApplyTo(nil); err == nil {
		t.Error("the fault was not moved to the new patch")
	}
	taken.Spec().Forget("bad")
	p.Labels().Set("later", "on")
	got, err := taken.ApplyTo(map[string]any{})
	if diff := cmp.Diff(map[string]any{"x": "y", "metadata": map[string]any{"labels": map[string]any{"a": "b"}}}, got); diff != "" || err != nil {
		t.Errorf("error %v, (-want +got):\n%s", err, diff)
	}
}

func TestPreviewReportsUnknownFields(t *testing.T) {
	tests := map[string]struct {
		obj  client.Object
		note func(*Patch)
		want string
	}{
		"unknown field":                {&corev1.ConfigMap{}, func(p *Patch) { p.Body().In("data2").Set("a", "b") }, "data2"},
		"unknown nested field":         {&corev1.Pod{}, func(p *Patch) { p.Status().In("here").Set("a", "b") }, "status.here"},
		"deletion of an unknown field": {&corev1.ConfigMap{}, func(p *Patch) { p.Body().Set("data2", nil) }, ""},
		"known field":                  {&corev1.ConfigMap{}, func(p *Patch) { p.Body().In("data").Set("a", "b") }, ""},
		"unstructured object":          {&unstructured.Unstructured{Object: map[string]any{}}, func(p *Patch) { p.Body().Set("data2", "x") }, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := &Patch{}
			test.note(p)
			_, err := p.ApplyToCopy(test.obj)
			path := ""
			if field, ok := errors.AsType[*FieldError](err); ok {
				path = field.Path
			}
			if path != test.want || test.want == "" && err != nil {
				t.Errorf("path %q, error %v, want %q", path, err, test.want)
			}
		})
	}
}
