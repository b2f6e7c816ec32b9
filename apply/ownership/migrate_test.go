// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNewMigrationPatch checks that the patch changes only the entries with the removed version, and only if the object
// is unchanged [F95].
func TestNewMigrationPatch(t *testing.T) {
	obj := &metav1.ObjectMeta{ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "a", APIVersion: "x/v1beta1"}, {Manager: "b", APIVersion: "x/v1"}, {Manager: "c", APIVersion: "x/v1alpha1"},
	}}
	raw, err := NewMigrationPatch(obj, "x/v1beta1", "x/v1")
	if err != nil {
		t.Fatal(err)
	}
	var patch []struct {
		Op, Path string
		Value    any
	}
	if err := json.Unmarshal(raw, &patch); err != nil {
		t.Fatal(err)
	}
	var entries []metav1.ManagedFieldsEntry
	for _, one := range patch {
		data, err := json.Marshal(one.Value)
		if err != nil {
			t.Fatal(err)
		}
		switch one.Path {
		case "/metadata/managedFields":
			if err := json.Unmarshal(data, &entries); err != nil {
				t.Fatal(err)
			}
		case "/metadata/resourceVersion":
			if string(data) != `"7"` {
				t.Errorf("resourceVersion %s, want 7", data)
			}
		}
	}
	if len(entries) != 3 || entries[0].APIVersion != "x/v1" || entries[2].APIVersion != "x/v1alpha1" || len(patch) != 2 {
		t.Errorf("got %s", raw)
	}
	if obj.ManagedFields[0].APIVersion != "x/v1beta1" {
		t.Error("the object was changed")
	}
	if raw, err := NewMigrationPatch(obj, "x/v2", "x/v1"); raw != nil || err != nil {
		t.Errorf("without such an entry: %s, %v", raw, err)
	}
}

func TestNewMigrationPatchMergesTheEntriesOfOneManager(t *testing.T) {
	entry := func(version, subresource, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: "a", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: version, Subresource: subresource, FieldsV1: metav1.NewFieldsV1(fields),
		}
	}
	patchOf := func(entries ...metav1.ManagedFieldsEntry) (string, error) {
		raw, err := NewMigrationPatch(&metav1.ObjectMeta{ManagedFields: entries}, "x/v1beta1", "x/v1")
		return string(raw), err
	}
	t.Run("a merged entry keeps the fields of both versions [F95]", func(t *testing.T) {
		got, err := patchOf(entry("x/v1beta1", "", `{"f:a":{},"f:status":{}}`), entry("x/v1", "", `{"f:b":{}}`), entry("x/v1beta1", "status", `{"f:c":{}}`))
		want, _ := patchOf(entry("x/v1beta1", "", `{"f:a":{},"f:b":{},"f:status":{}}`), entry("x/v1beta1", "status", `{"f:c":{}}`))
		if err != nil || got != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	})
	t.Run("an invalid entry is an error [F95]", func(t *testing.T) {
		if _, err := patchOf(entry("x/v1beta1", "", `{"x":{}}`), entry("x/v1", "", `{"f:b":{}}`)); err == nil {
			t.Error("no error")
		}
	})
}
