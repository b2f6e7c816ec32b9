// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

var (
	first  = ownership.Owner{UID: "1", Landscape: "9c02", Namespace: "shop", Name: "first"}
	second = ownership.Owner{UID: "2", Landscape: "9c02", Namespace: "shop", Name: "second"}
	third  = ownership.Owner{UID: "3", Landscape: "7777", Namespace: "shop", Name: "third"}
)

func TestListOwners(t *testing.T) {
	stamped := func(primary bool, shared ...ownership.Owner) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": map[string]any{"other": "stays"}}}}
		for _, owner := range shared {
			part := &unstructured.Unstructured{Object: map[string]any{}}
			owner.Mark(part)
			owner.MarkShared(part)
			all := obj.GetAnnotations()
			maps.Copy(all, part.GetAnnotations())
			obj.SetAnnotations(all)
			if len(part.GetLabels()) > 0 {
				t.Errorf("a further owner has the labels %v", part.GetLabels())
			}
		}
		if primary {
			first.Mark(obj)
		}
		return obj
	}
	broken := stamped(true)
	broken.SetAnnotations(map[string]string{second.GetOwnerAnnotationKey(): "what/is/this/here", "deployerkit.dev/owner-": "unknown"})
	for name, tc := range map[string]struct {
		reason string
		obj    *unstructured.Unstructured
		want   []ownership.Owner
	}{
		"None":      {"no mark", stamped(false), nil},
		"One":       {"only the label", stamped(true), []ownership.Owner{first}},
		"Several":   {"the owner of the label first, then by UID [F62]", stamped(true, third, second), []ownership.Owner{first, second, third}},
		"Unlabeled": {"removing the label removes no other owner [F62]", stamped(false, second), []ownership.Owner{second}},
		"Twice":     {"an owner in the label and in an annotation counts once [F62]", stamped(true, first, second), []ownership.Owner{first, second}},
		"Broken":    {"an invalid annotation still names an owner [F62]", broken, []ownership.Owner{{UID: "1"}, {UID: "2"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ownership.ListOwners(tc.obj)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestTransferFieldsKeepsEntriesOfOtherItems(t *testing.T) {
	t.Run("entries of other items that own the object are kept [F62]", func(t *testing.T) {
		entries := []metav1.ManagedFieldsEntry{
			newManagedFields("deployerkit-2", "Apply", "v1", "", `{"f:b":{}}`), newManagedFields("deployerkit-2-patch", "Apply", "v1", "", `{"f:c":{}}`),
			newManagedFields("deployerkit-old", "Apply", "v1", "", `{"f:a":{}}`),
		}
		obj := newObject(entries...)
		obj.Labels = map[string]string{ownership.LabelItem: "4f1e"}
		obj.Annotations = map[string]string{second.GetOwnerAnnotationKey(): "9c02/shop/second"}
		got, changed, err := ownership.TransferFields(obj, newOwner)
		if err != nil || !changed {
			t.Fatalf("changed %v, error %v", changed, err)
		}
		want := append([]metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{}}`)}, entries[:2]...)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
