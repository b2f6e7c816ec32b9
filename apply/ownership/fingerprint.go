// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Fingerprint is a hash of 22 characters that changes when a field that the item owns is changed or removed. A
// Fingerprint is empty if managedFields contains no entry of the item's manager. Either the server does not track the
// fields of this kind, or another writer removed the entry. An empty Fingerprint does not show whether the object has
// changed.
type Fingerprint string

// fingerprintSize is the number of bytes of the hash that a Fingerprint contains.
const fingerprintSize = 16

// ComputeFingerprint returns the fingerprint of an object for a field manager. It looks up the entry of this manager in
// managedFields that has the operation Apply and no subresource. The fingerprint is a hash of the fields, the API version and
// the time in this entry, and of the object's UID.
//
// The hash includes the time because another program that applies under the same manager can change values without
// changing the set of fields. The hash includes the UID because an object that was restored from a backup keeps its old
// entry.
//
// The typed, unstructured and metadata-only forms of the same object have the same fingerprint.
func ComputeFingerprint(obj metav1.Object, manager string) Fingerprint {
	entry, fields, ok := findAppliedFields(obj, manager)
	if !ok {
		return ""
	}
	// A UID, an API version and a time never contain a NUL byte, so different inputs always result in different bytes.
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(obj.GetUID()), []byte(entry.APIVersion), formatSeconds(entry.Time), fields}, []byte{0}))
	return Fingerprint(base64.RawURLEncoding.EncodeToString(sum[:fingerprintSize]))
}

// FindApplyEntry returns the entry of managedFields for the fields that a manager applied to the object itself, not to
// a subresource. It returns false if there is no such entry.
func FindApplyEntry(entries []metav1.ManagedFieldsEntry, manager string) (metav1.ManagedFieldsEntry, bool) {
	if i := findIndex(entries, manager); i >= 0 {
		return entries[i], true
	}
	return metav1.ManagedFieldsEntry{}, false
}

func findIndex(entries []metav1.ManagedFieldsEntry, manager string) int {
	return slices.IndexFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
	})
}

// ListManagedFields returns the managedFields of an object, but leaves FieldsV1 empty in each entry. It is much faster
// than GetManagedFields, which encodes FieldsV1 as JSON.
func ListManagedFields(obj *unstructured.Unstructured) []metav1.ManagedFieldsEntry {
	raw := listRawEntries(obj)
	out := make([]metav1.ManagedFieldsEntry, len(raw))
	for i, one := range raw {
		fields, _ := one.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		out[i] = metav1.ManagedFieldsEntry{
			Manager: text("manager"), Operation: metav1.ManagedFieldsOperationType(text("operation")), APIVersion: text("apiVersion"),
			FieldsType: text("fieldsType"), Subresource: text("subresource"),
		}
		if at, err := time.Parse(time.RFC3339, text("time")); err == nil {
			out[i].Time = &metav1.Time{Time: at}
		}
	}
	return out
}

func listRawEntries(obj *unstructured.Unstructured) []any {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	return entries
}

// findAppliedFields returns the same entry as FindApplyEntry, and the fields of this entry in a canonical form. The
// canonical form does not depend on the order and the escaping of the fields. It is needed because unstructured objects
// order keys such as k:{"containerPort":9} and k:{"containerPort":10} differently from the server. The last result is
// false if the entry or its fields are missing.
func findAppliedFields(obj metav1.Object, manager string) (entry metav1.ManagedFieldsEntry, fields []byte, ok bool) {
	var tree any
	if u, isRaw := obj.(*unstructured.Unstructured); isRaw {
		entries := ListManagedFields(u)
		i := findIndex(entries, manager)
		if i < 0 {
			return entry, nil, false
		}
		raw, _ := listRawEntries(u)[i].(map[string]any)
		entry, tree = entries[i], raw["fieldsV1"]
	} else if entry, ok = FindApplyEntry(obj.GetManagedFields(), manager); !ok || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &tree) != nil {
		return entry, nil, false
	}
	fields, err := json.Marshal(tree)
	return entry, fields, err == nil && tree != nil
}

// formatSeconds formats a time with the precision of the server, which stores whole seconds. The time may be nil.
func formatSeconds(t *metav1.Time) []byte {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UTC().AppendFormat(nil, time.RFC3339)
}
