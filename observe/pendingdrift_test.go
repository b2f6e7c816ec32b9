// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestTextsAboutDrift(t *testing.T) {
	object := Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}
	for name, tc := range map[string]struct {
		drift       Drift
		correction  Correction
		text, fight string
	}{
		"name the finalizers that hold a deleted object [F79]": {
			Drift{Reason: DriftReasonDeleting, Finalizers: []string{"example.org/held"}},
			Correction{},
			"configmaps ns/a: deleting, held by finalizers example.org/held", "",
		},
		"name the manager and the field of a fight": {
			Drift{Reason: DriftReasonChanged},
			Correction{Fight: true, Delay: time.Second, Manager: "kubectl", Field: "data.key"},
			"configmaps ns/a: changed (a fight with kubectl about data.key: corrected again after 1s)",
			"configmaps ns/a: data.key is changed by kubectl after every correction; the next correction follows after 1s",
		},
		"say that the manager of a fight is unknown [F104]": {
			Drift{Reason: DriftReasonDeleting},
			Correction{Fight: true, Delay: time.Second, Field: "Deleting"},
			"configmaps ns/a: deleting (a fight with an unknown manager about the object: corrected again after 1s)",
			"configmaps ns/a: it is deleted by an unknown manager after every correction; the next correction follows after 1s",
		},
		"say what happens although the kind of drift has changed since [F104]": {
			Drift{Reason: DriftReasonChanged},
			Correction{Fight: true, Delay: time.Second, Field: "Gone"},
			"configmaps ns/a: changed (a fight with an unknown manager about the object: corrected again after 1s)",
			"configmaps ns/a: it is deleted by an unknown manager after every correction; the next correction follows after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.drift.Object = object
			d := PendingDrift{Drift: tc.drift, Correction: tc.correction}
			if got := d.String(); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
			if got := d.DescribeFight(); tc.fight != "" && got != tc.fight {
				t.Errorf("got %q, want %q", got, tc.fight)
			}
		})
	}
}
