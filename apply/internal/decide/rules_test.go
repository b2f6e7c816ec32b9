// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func TestIsOwn(t *testing.T) {
	owner := testOwner
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
	also := func(o *metav1.PartialObjectMetadata) {
		o.Annotations = map[string]string{owner.GetOwnerAnnotationKey(): "l/ns/n"}
	}
	another := label(ownership.LabelItem, "other")
	none := func(*Rules) {}
	chart := func(r *Rules) { r.LandscaperLabel = "chart" }
	for name, tc := range map[string]struct {
		marks marks
		known types.UID
		want  bool
		rules func(*Rules)
	}{
		"an object without marks is not owned":                                                           {nil, "u", false, none},
		"the owner label marks an object of the inventory":                                               {marks{label(ownership.LabelItem, "item")}, "u", true, none},
		"the owner label marks an object with another UID":                                               {marks{label(ownership.LabelItem, "item")}, "v", true, none},
		"the label of an earlier item with the same name marks an object":                                {marks{label(ownership.LabelItem, "former"), annotated}, "u", true, none},
		"the label of another item marks no object":                                                      {marks{label(ownership.LabelItem, "other")}, "u", false, none},
		"the field manager of the item marks an object of the inventory":                                 {marks{manager("kubectl"), manager(owner.FieldManager())}, "u", true, none},
		"the field manager does not mark an object with another UID":                                     {marks{manager(owner.FieldManager())}, "v", false, none},
		"the label of another item outweighs the field manager":                                          {marks{manager(owner.FieldManager()), label(ownership.LabelItem, "other")}, "u", false, none},
		"the field manager of another item marks no object":                                              {marks{manager("deployerkit-other")}, "u", false, none},
		"the label of Landscaper marks an object of the inventory":                                       {marks{label(landscaperLabel, "n")}, "u", true, none},
		"the label of Landscaper does not mark an object with another UID":                               {marks{label(landscaperLabel, "n")}, "v", false, none},
		"the label of another type of deployer marks no object [D17]":                                    {marks{label(landscaperLabel, "n")}, "u", false, chart},
		"the label of this type of deployer marks an object [D17]":                                       {marks{label("chart", "n")}, "u", true, chart},
		"the label of Landscaper for another item marks no object":                                       {marks{label(landscaperLabel, "m")}, "u", false, none},
		"the annotation of an additional owner marks a shared object":                                    {marks{another, also}, "u", true, withSharedKinds},
		"the annotation of an additional owner does not mark an object with another UID":                 {marks{another, also}, "v", false, withSharedKinds},
		"the annotation of an additional owner marks no object of a kind that items do not share":        {marks{another, also}, "u", false, none},
		"the label of another item marks no shared object":                                               {marks{another}, "u", false, withSharedKinds},
		"the field manager marks a shared object of another owner":                                       {marks{another, manager(owner.FieldManager())}, "u", true, withSharedKinds},
		"the label of another item outweighs the label of Landscaper":                                    {marks{label(landscaperLabel, "n"), label(ownership.LabelItem, "other")}, "u", false, none},
		"the owner label does not mark an object with another UID that another writer made [F98]":        {marks{label(ownership.LabelItem, "item"), manager("replicator")}, "v", false, none},
		"the owner label marks an object with another UID that the item made [F98]":                      {marks{label(ownership.LabelItem, "item"), manager(owner.FieldManager())}, "v", true, none},
		"the owner label marks an object of the inventory that another writer changed [F98]":             {marks{label(ownership.LabelItem, "item"), manager("replicator")}, "u", true, none},
		"the label of an earlier item marks an object with another UID that the earlier item made [F98]": {marks{label(ownership.LabelItem, "former"), annotated, manager("deployerkit-former")}, "v", true, none},
	} {
		t.Run(name+" [F9]", func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
			for _, mark := range tc.marks {
				mark(live)
			}
			if got := newRules(tc.rules).isOwn(live, newEntry(tc.known, "")); got != tc.want {
				t.Errorf("isOwn: got %t", got)
			}
		})
	}
}
