// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestRejectedFirstWriteLeavesNoEntry(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	terminating := apierrors.NewForbidden(configMaps, "a", errDenied)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		err    error
		before *Entry
		want   int // the number of entries
	}{
		"a forbidden first write leaves no entry [F96]":                               {err: apierrors.NewForbidden(configMaps, "a", errDenied)},
		"an invalid first write leaves no entry [F96]":                                {err: newAnswer(422, "bad", nil)},
		"a first write that an admission policy denies leaves no entry [F96]":         {err: newAnswer(422, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, nil)},
		"a first write that a webhook denies with the code 500 leaves no entry [F96]": {err: newAnswer(500, `admission webhook "w.x" denied the request: no`, nil)},
		"a first write that conflicts with another manager leaves no entry [F96]":     {err: apierrors.NewConflict(configMaps, "a", errDenied)},
		"a first write without an answer leaves an entry [F96]":                       {err: errors.New("dial: refused"), want: 1},
		"a first write that fails in the server leaves an entry [F96]":                {err: apierrors.NewInternalError(errDenied), want: 1},
		"a first write in a namespace that is being deleted leaves an entry":          {err: terminating, want: 1},
		"a forbidden write leaves the entry of an earlier write [F96]":                {err: apierrors.NewForbidden(configMaps, "a", errDenied), before: &Entry{UID: "u", Hash: "h"}, want: 1},
		"a forbidden write leaves the entry of an interrupted first write [F96]":      {err: apierrors.NewForbidden(configMaps, "a", errDenied), before: &Entry{}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, inv := newApplyServer(), Inventory{}
			s.applyErrors["a"] = tc.err
			if apierrors.IsConflict(tc.err) {
				s.objects = map[string]*unstructured.Unstructured{"a": {Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "shop", "name": "a", "uid": "u"},
				}}}
			}
			if tc.before != nil {
				tc.before.APIVersion, tc.before.Kind, tc.before.Namespace, tc.before.Name = "v1", "ConfigMap", "shop", "a"
				inv.Entries = []Entry{*tc.before}
			}
			inv, _, _ = s.apply(t, inv, manifest("ConfigMap", "a", nil))
			if len(inv.Entries) != tc.want || len(s.written) == 0 {
				t.Errorf("want %d entries, got %v after %d writes", tc.want, inv.Entries, len(s.written))
			}
		})
	}
}
