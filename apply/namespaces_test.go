// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestDeletingNamespaceIsExplained(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "a", errDenied)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"the wait for a namespace says what holds it, and costs one read [F104]": {
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "finalizers": []any{"a/b"}},
				"status": map[string]any{"conditions": []any{map[string]any{"type": "NamespaceFinalizersRemaining", "status": "True", "message": "c/d in 1 resource instances"}}},
			}},
			"the namespace shop is being deleted, held by finalizers a/b: c/d in 1 resource instances",
		},
		"the wait for a namespace that cannot be read says nothing about finalizers [F104]": {nil, "the namespace shop is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApplyServer()
			s.objects = map[string]*unstructured.Unstructured{"shop": tc.live}
			s.applyErrors["a"], s.applyErrors["b"] = terminating, terminating
			_, report, err := s.apply(t, Inventory{}, manifest("ConfigMap", "a", nil), manifest("ConfigMap", "b", nil))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range report.Waiting {
				if w.Message != tc.want {
					t.Errorf("got %q, want %q", w.Message, tc.want)
				}
			}
			if diff := cmp.Diff([]string{"shop"}, s.read); len(report.Waiting) != 2 || diff != "" {
				t.Error(report.Waiting, diff)
			}
		})
	}
}
