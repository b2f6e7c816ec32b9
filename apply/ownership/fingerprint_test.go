// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

const manager = "deployerkit-4f1e"

// fieldsJSON contains keys that encoding/json orders or escapes differently from the API server: keys with numbers, and
// keys with the characters < > &.
const fieldsJSON = `{"f:spec":{"f:ports":{".":{},"k:{\"containerPort\":9}":{".":{}},"k:{\"containerPort\":10}":{}}},"f:data":{"f:a<b>&c":{}}}`

var entryTime = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

func newEntry(change ...func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
	e := metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1",
		Time: &entryTime, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fieldsJSON),
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func newObject(entries ...metav1.ManagedFieldsEntry) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: "u1", ManagedFields: entries}}
}

func TestComputeKey(t *testing.T) {
	foreign := newEntry(func(e *metav1.ManagedFieldsEntry) {
		e.Manager = "kubectl"
		e.FieldsV1 = metav1.NewFieldsV1(`{"f:z":{}}`)
	})
	other := metav1.NewFieldsV1(`{"f:status":{}}`)
	base := ownership.ComputeFingerprint(newObject(newEntry()), manager)
	if len(base) != 22 {
		t.Errorf("the key %q has %d characters, not 22", base, len(base))
	}
	cases := map[string]struct {
		reason string
		obj    *corev1.ConfigMap
		same   bool
	}{
		"Foreign":     {"entries of others do not count", newObject(foreign, newEntry()), true},
		"Subresource": {"nor does ours for a subresource", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.Subresource, e.FieldsV1 = "status", other }), newEntry()), true},
		"Update":      {"nor what was not applied", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.Operation, e.FieldsV1 = "Update", other }), newEntry()), true},
		"Zone": {"a time is the same in every zone", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) {
			local := metav1.NewTime(entryTime.In(time.FixedZone("east", 7200)))
			e.Time = &local
		})), true},
		"Fields":  {"a field less", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1(`{}`) })), false},
		"Version": {"another API version", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.APIVersion = "v2" })), false},
		"Time": {"an apply under our name", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) {
			later := metav1.NewTime(entryTime.Add(time.Second))
			e.Time = &later
		})), false},
		"NoTime": {"entries after a version was removed have none", newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.Time = nil })), false},
		"UID": {"another object of the same name", func() *corev1.ConfigMap {
			o := newObject(newEntry())
			o.UID = "u2"
			return o
		}(), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ownership.ComputeFingerprint(tc.obj, manager)
			if (got == base) != tc.same || got == "" {
				t.Errorf("%s: got %q, base %q, same should be %v", tc.reason, got, base, tc.same)
			}
		})
	}
}

func TestComputeKeyWithoutEntry(t *testing.T) {
	for name, obj := range map[string]*corev1.ConfigMap{
		"Untracked": newObject(),
		"Wiped":     newObject(metav1.ManagedFieldsEntry{}),
		"NoFields":  newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = nil })),
		"NullField": newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1("null") })),
		"Garbage":   newObject(newEntry(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = metav1.NewFieldsV1("{") })),
	} {
		t.Run(name, func(t *testing.T) {
			if got := ownership.ComputeFingerprint(obj, manager); got != "" {
				t.Errorf("got %q, want none", got)
			}
		})
	}
}

// TestComputeKeyIgnoresTheForm compares the two sources of a key: the engine computes the key from an unstructured
// answer, and a watch computes it from metadata.
func TestComputeKeyIgnoresTheForm(t *testing.T) {
	typed := newObject(newEntry())
	want := ownership.ComputeFingerprint(typed, manager)
	raw, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	loose := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &loose.Object); err != nil {
		t.Fatal(err)
	}
	slim := &metav1.PartialObjectMetadata{ObjectMeta: *typed.ObjectMeta.DeepCopy()}
	for name, obj := range map[string]metav1.Object{"unstructured": loose, "metadata": slim} {
		if got := ownership.ComputeFingerprint(obj, manager); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// TestListEntries compares Entries with GetManagedFields, which also returns FieldsV1.
func TestListEntries(t *testing.T) {
	raw, err := json.Marshal(newObject(newEntry(), newEntry(func(e *metav1.ManagedFieldsEntry) {
		e.Manager, e.Operation, e.Subresource, e.Time = "kubectl", metav1.ManagedFieldsOperationUpdate, "status", nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	loose := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &loose.Object); err != nil {
		t.Fatal(err)
	}
	want := loose.GetManagedFields()
	for i := range want {
		want[i].FieldsV1 = nil
	}
	got := ownership.ListManagedFields(loose)
	if !equality.Semantic.DeepEqual(got, want) || len(got) != 2 {
		t.Errorf("got %v, want %v", got, want)
	}
	metadata := loose.Object["metadata"].(map[string]any)
	entries := metadata["managedFields"].([]any)
	for name, wrong := range map[string]any{"text": "x", "texts": []any{"x", nil}, "numbers": []any{map[string]any{"manager": 1, "time": 2}}, "none": nil} {
		metadata["managedFields"] = wrong
		if got := ownership.ComputeFingerprint(loose, manager); got != "" {
			t.Errorf("%s: the key is %q", name, got)
		}
	}
	entries[0].(map[string]any)["fieldsV1"] = nil
	metadata["managedFields"] = entries
	if got := ownership.ComputeFingerprint(loose, manager); got != "" {
		t.Errorf("without fields, the key is %q", got)
	}
}

func BenchmarkComputeKey(b *testing.B) {
	obj := newObject(newEntry())
	b.ReportAllocs()
	for b.Loop() {
		ownership.ComputeFingerprint(obj, manager)
	}
}
