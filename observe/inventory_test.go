// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func TestListUnknown(t *testing.T) {
	owner := ownership.Owner{UID: item, Landscape: "landscape", Namespace: "items", Name: "shop"}
	marked := func(by ownership.Owner, policy string) func(*metav1.PartialObjectMetadata) {
		return func(m *metav1.PartialObjectMetadata) {
			m.Labels = map[string]string{ownership.LabelItem: string(by.UID)}
			m.Annotations = map[string]string{
				ownership.AnnotationLandscape: string(by.Landscape), ownership.AnnotationNamespace: by.Namespace, ownership.AnnotationName: by.Name,
			}
			if policy != "" {
				m.Annotations[ownership.AnnotationPolicy] = policy
			}
		}
	}
	earlier, other := owner, owner
	earlier.UID, other.Name = "earlier", "other"
	now := metav1.Now()
	for name, tc := range map[string]struct {
		object  func(*metav1.PartialObjectMetadata)
		known   []types.UID
		ignored map[types.UID]string
		want    bool
	}{
		"an object of the item is unknown if the inventory does not contain it [F109]": {object: marked(owner, ""), want: true},
		"an object of an earlier item with the same name is unknown [F72]":             {object: marked(earlier, ""), want: true},
		"an object in the inventory is known":                                          {object: marked(owner, ""), known: []types.UID{"u0", "u1", "u2"}},
		"an object of another item is none of the item's":                              {object: marked(other, "")},
		"an object with the label but without the annotations is none of the item's":   {object: withItemLabel(item)},
		"an object that the item has released is ignored":                              {object: marked(owner, ownership.PolicyReleased)},
		"an object that stays in the cluster is ignored":                               {object: marked(owner, "keep")},
		"an object is ignored until a newer version exists":                            {object: marked(owner, ""), ignored: map[types.UID]string{"u1": "10"}},
		"an object is ignored only until a newer version exists":                       {object: marked(owner, ""), ignored: map[types.UID]string{"u1": "9"}, want: true},
		"an object that this run has removed is ignored in the version that is stored": {object: marked(owner, ""), ignored: map[types.UID]string{"u1": ""}},
		"an object that is being deleted is ignored":                                   {object: func(m *metav1.PartialObjectMetadata) { marked(owner, "")(m); m.DeletionTimestamp = &now }},
	} {
		t.Run(name, func(t *testing.T) {
			w, whole, _ := newTestWatcher(t)
			var told []types.UID
			w.OnUnknownObject(func(item types.UID) { told = append(told, item) })
			must(t, whole.Replace([]any{newObject(tc.object)}, "10"))
			if got := w.SetInventory(owner, tc.known, tc.ignored, true); got != tc.want {
				t.Errorf("Know reported %t, want %t", got, tc.want)
			}
			if got := w.ListUnknown(owner, 10); (len(got) == 1) != tc.want || len(got) == 1 && got[0].UID != "u1" {
				t.Errorf("unknown: %v", got)
			}
			if got := w.ListUnknown(owner, 0); len(got) != 0 {
				t.Errorf("more objects than the limit: %v", got)
			}
			must(t, whole.Update(newObject(tc.object)))
			want := []types.UID(nil)
			if tc.want {
				want = []types.UID{item}
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("items that were told (-want +got):\n%s", diff)
			}
			w.SetBaseline(item, nil)
			w.Suspend(item)
			must(t, whole.Update(newObject(tc.object, withVersion("11"))))
			if len(told) != len(want) {
				t.Error("an item was told while it writes its objects")
			}
			w.SetBaseline(item, nil)
			w.SetInventory(owner, tc.known, tc.ignored, false)
			must(t, whole.Update(newObject(tc.object, withVersion("12"))))
			if len(told) != len(want) {
				t.Error("an item was told at the beginning of its run")
			}
			w.Forget(item)
			if got := w.ListUnknown(owner, 10); len(got) != 0 {
				t.Errorf("unknown after Forget: %v", got)
			}
		})
	}
}

func TestListUnknownAfterRestore(t *testing.T) {
	owner := ownership.Owner{UID: item, Landscape: "landscape", Namespace: "items", Name: "shop"}
	restored := newObject(withVersion("5"), func(m *metav1.PartialObjectMetadata) {
		m.Annotations = map[string]string{
			ownership.AnnotationLandscape: "landscape", ownership.AnnotationNamespace: "items", ownership.AnnotationName: "shop",
		}
	})
	w, whole, _ := newTestWatcher(t)
	told := 0
	w.OnUnknownObject(func(types.UID) { told++ })
	must(t, whole.Replace(nil, "20"))
	w.SetInventory(owner, nil, map[types.UID]string{"u1": ""}, true) // the run has deleted u1, and the watch has reported it
	must(t, whole.Replace([]any{restored}, "6"))
	if told != 1 || len(w.ListUnknown(owner, 10)) != 1 {
		t.Errorf("an object that a restore of the target brought back is ignored: told %d times, unknown %v", told, w.ListUnknown(owner, 10))
	}
}
