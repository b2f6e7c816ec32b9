// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	also := func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{owner.SharedKey(): "l/ns/n"} }
	another := label(ownership.LabelItem, "other")
	chart := Options{LandscaperLabel: "chart"}
	both := Options{SharedKinds: []schema.GroupKind{{Kind: "ConfigMap"}}}
	for name, tc := range map[string]struct {
		marks   marks
		known   types.UID
		want    bool
		options Options
	}{
		"none":                                            {nil, "u", false, Options{}},
		"our label":                                       {marks{label(ownership.LabelItem, "item")}, "u", true, Options{}},
		"our label, another UID":                          {marks{label(ownership.LabelItem, "item")}, "v", true, Options{}},
		"an earlier life":                                 {marks{label(ownership.LabelItem, "former"), annotated}, "u", true, Options{}},
		"another item":                                    {marks{label(ownership.LabelItem, "other")}, "u", false, Options{}},
		"our manager":                                     {marks{manager("kubectl"), manager(owner.Manager())}, "u", true, Options{}},
		"our manager, another UID":                        {marks{manager(owner.Manager())}, "v", false, Options{}},
		"our manager, another item":                       {marks{manager(owner.Manager()), label(ownership.LabelItem, "other")}, "u", false, Options{}},
		"another manager":                                 {marks{manager("deployerkit-other")}, "u", false, Options{}},
		"Landscaper's label":                              {marks{label(landscaperLabel, "n")}, "u", true, Options{}},
		"Landscaper's label, another UID":                 {marks{label(landscaperLabel, "n")}, "v", false, Options{}},
		"the label of another type [D17]":                 {marks{label(landscaperLabel, "n")}, "u", false, chart},
		"the label of this type [D17]":                    {marks{label("chart", "n")}, "u", true, chart},
		"Landscaper's label for another":                  {marks{label(landscaperLabel, "m")}, "u", false, Options{}},
		"a further owner":                                 {marks{another, also}, "u", true, both},
		"a further owner, another UID":                    {marks{another, also}, "v", false, both},
		"a further owner, not of a kind that items share": {marks{another, also}, "u", false, Options{}},
		"another item, of a kind that items share":        {marks{another}, "u", false, both},
		"our manager beside another owner":                {marks{another, manager(owner.Manager())}, "u", true, both},
		"Landscaper's label, another item's":              {marks{label(landscaperLabel, "n"), label(ownership.LabelItem, "other")}, "u", false, Options{}},
		"our label, another UID, another writer [F98]":    {marks{label(ownership.LabelItem, "item"), manager("replicator")}, "v", false, Options{}},
		"our label, another UID, our manager [F98]":       {marks{label(ownership.LabelItem, "item"), manager(owner.Manager())}, "v", true, Options{}},
		"our label, another writer [F98]":                 {marks{label(ownership.LabelItem, "item"), manager("replicator")}, "u", true, Options{}},
		"an earlier life, another UID, its manager [F98]": {marks{label(ownership.LabelItem, "former"), annotated, manager("deployerkit-former")}, "v", true, Options{}},
	} {
		t.Run(name+" [F9]", func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: "u"}}
			for _, mark := range tc.marks {
				mark(live)
			}
			entry := Entry{APIVersion: "v1", Kind: "ConfigMap", UID: tc.known}
			if got := New(nil, configMaps(), tc.options).begin(owner, Inventory{}).rules.isOwn(live, entry); got != tc.want {
				t.Errorf("isOwn: got %t", got)
			}
		})
	}
}
