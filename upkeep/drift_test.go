// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/watch"
)

func TestTextsAboutDrift(t *testing.T) {
	object := watch.Object{Resource: configMaps, NamespacedName: types.NamespacedName{Namespace: "ns", Name: "a"}}
	for name, tc := range map[string]struct {
		event       watch.Event
		heal        watch.Heal
		text, fight string
	}{
		"name the finalizers that hold a deleted object [F79]": {
			watch.Event{What: watch.Deleting, Finalizers: []string{"example.org/held"}},
			watch.Heal{},
			"configmaps ns/a: deleting, held by finalizers example.org/held", "",
		},
		"name the manager and the field of a fight": {
			watch.Event{What: watch.Changed},
			watch.Heal{Fight: true, Delay: time.Second, Manager: "kubectl", Field: "data.key"},
			"configmaps ns/a: changed (a fight with kubectl about data.key: corrected again after 1s)",
			"configmaps ns/a: data.key is changed by kubectl after every correction; the next correction follows after 1s",
		},
		"say that the manager of a fight is unknown [F104]": {
			watch.Event{What: watch.Deleting},
			watch.Heal{Fight: true, Delay: time.Second, Field: "Deleting"},
			"configmaps ns/a: deleting (a fight with an unknown manager about the object: corrected again after 1s)",
			"configmaps ns/a: it is deleted by an unknown manager after every correction; the next correction follows after 1s",
		},
		"say what happens although the kind of drift has changed since [F104]": {
			watch.Event{What: watch.Changed},
			watch.Heal{Fight: true, Delay: time.Second, Field: "Gone"},
			"configmaps ns/a: changed (a fight with an unknown manager about the object: corrected again after 1s)",
			"configmaps ns/a: it is deleted by an unknown manager after every correction; the next correction follows after 1s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.event.Object = object
			d := drift{Event: tc.event, Heal: tc.heal}
			if got := d.String(); got != tc.text {
				t.Errorf("got %q, want %q", got, tc.text)
			}
			if got := d.contest(); tc.fight != "" && got != tc.fight {
				t.Errorf("got %q, want %q", got, tc.fight)
			}
		})
	}
}
