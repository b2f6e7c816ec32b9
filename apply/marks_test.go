// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func TestMarks(t *testing.T) {
	owner := ownership.Owner{UID: "item", Landscape: "l", Namespace: "ns", Name: "n"}
	label := func(key, value string) func(*metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[key] = value
		}
	}
	manager := func(name string) func(*metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) {
			o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: name})
		}
	}
	annotated := func(o *metav1.PartialObjectMetadata) {
		o.Annotations = map[string]string{ownership.AnnotationLandscape: "l", ownership.AnnotationNamespace: "ns", ownership.AnnotationName: "n"}
	}
	type marks = []func(*metav1.PartialObjectMetadata)
	for name, tc := range map[string]struct {
		marks marks
		known types.UID
		want  bool
	}{
		"none":                               {nil, "u", false},
		"our label":                          {marks{label(ownership.LabelItem, "item")}, "u", true},
		"our label, another UID":             {marks{label(ownership.LabelItem, "item")}, "v", true},
		"an earlier life":                    {marks{label(ownership.LabelItem, "former"), annotated}, "u", true},
		"another item":                       {marks{label(ownership.LabelItem, "other")}, "u", false},
		"our manager":                        {marks{manager("kubectl"), manager(owner.Manager())}, "u", true},
		"our manager, another UID":           {marks{manager(owner.Manager())}, "v", false},
		"our manager, another item":          {marks{manager(owner.Manager()), label(ownership.LabelItem, "other")}, "u", false},
		"another manager":                    {marks{manager("deployerkit-other")}, "u", false},
		"Landscaper's label":                 {marks{label(landscaperLabel, "n")}, "u", true},
		"Landscaper's label, another UID":    {marks{label(landscaperLabel, "n")}, "v", false},
		"Landscaper's label for another":     {marks{label(landscaperLabel, "m")}, "u", false},
		"Landscaper's label, another item's": {marks{label(landscaperLabel, "n"), label(ownership.LabelItem, "other")}, "u", false},
	} {
		t.Run(name+" [F9]", func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
			for _, mark := range tc.marks {
				mark(live)
			}
			s := &slot{}
			s.UID = tc.known
			if got := New(nil, configMaps(), Options{}).newRun(owner, Inventory{}, nil).isOwn(live, s); got != tc.want {
				t.Errorf("isOwn: got %t", got)
			}
		})
	}
}
