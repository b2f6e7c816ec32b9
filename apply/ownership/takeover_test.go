// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// newOwner is the item that takes over the object. The constant `manager` is the field manager of this item.
var newOwner = ownership.Owner{UID: "4f1e"}

// newManagedFields returns a managedFields entry with the given values.
func newManagedFields(manager, operation, version, subresource, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationType(operation), APIVersion: version, Subresource: subresource,
		Time: &entryTime, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func TestTransferFields(t *testing.T) {
	const ls = "landscaper-manifest"
	cases := map[string]struct {
		reason string
		have   []metav1.ManagedFieldsEntry
		want   []metav1.ManagedFieldsEntry // nil if there is nothing to transfer
	}{
		"Nothing": {
			reason: "no write for own entries, entries of other managers and subresources",
			have: []metav1.ManagedFieldsEntry{
				newManagedFields(manager, "Apply", "v1", "", `{"f:a":{}}`), newManagedFields("kubectl", "Update", "v1", "", `{"f:b":{}}`),
				newManagedFields(ls, "Update", "v1", "status", `{"f:status":{}}`), newManagedFields("deployerkit-old-patch", "Update", "v1", "", `{"f:c":{}}`),
			},
		},
		"FormerLife": {
			reason: "an Apply entry of an earlier item becomes an own entry",
			have:   []metav1.ManagedFieldsEntry{newManagedFields("deployerkit-old", "Apply", "v1", "", `{"f:a":{}}`), newManagedFields("kubectl", "Apply", "v1", "", `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{}}`), newManagedFields("kubectl", "Apply", "v1", "", `{"f:b":{}}`)},
		},
		"MergesIntoOurs": {
			reason: "two own entries are merged",
			have:   []metav1.ManagedFieldsEntry{newManagedFields("deployerkit-old", "Apply", "v1", "", `{"f:a":{}}`), newManagedFields(manager, "Apply", "v1", "", `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{},"f:b":{}}`)},
		},
		"Updater": {
			reason: "an Update entry becomes an own entry, without its status",
			have:   []metav1.ManagedFieldsEntry{newManagedFields(ls, "Update", "v1", "", `{"f:a":{},"f:status":{"f:x":{}}}`)},
			want:   []metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{}}`)},
		},
		"keeps the fields of an entry with another version [F95]": {
			reason: "the next apply removes these fields",
			have:   []metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{}}`), newManagedFields(ls, "Update", "v2", "", `{"f:b":{}}`)},
			want:   []metav1.ManagedFieldsEntry{newManagedFields(manager, "Apply", "v1", "", `{"f:a":{},"f:b":{}}`)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := newObject(tc.have...)
			got, changed, err := ownership.TransferFields(obj, newOwner, ls)
			if err != nil || changed != (tc.want != nil) {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.have, obj.ManagedFields); diff != "" {
				t.Errorf("the object was changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTransferFieldsReportsInvalidEntry(t *testing.T) {
	obj := newObject(newManagedFields("deployerkit-old", "Apply", "v1", "", `{"x":{}}`))
	if _, _, err := ownership.TransferFields(obj, newOwner); err == nil {
		t.Error("a broken entry was taken over")
	}
}

func TestNewTransferPatch(t *testing.T) {
	obj := newObject(newManagedFields("deployerkit-old", "Apply", "v1", "", `{"f:a":{}}`))
	obj.ResourceVersion = "17"
	patch, err := ownership.NewTransferPatch(obj, newOwner)
	if err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal(patch, &got); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"op": "replace", "path": "/metadata/managedFields", "value": []any{map[string]any{
			"manager": manager, "operation": "Apply", "apiVersion": "v1", "time": "2026-01-02T03:04:05Z",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:a": map[string]any{}},
		}}},
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": "17"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if patch, err := ownership.NewTransferPatch(newObject(), newOwner); patch != nil || err != nil {
		t.Errorf("nothing to take over, got %s, %v", patch, err)
	}
}
