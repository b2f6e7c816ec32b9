// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Key identifies what an item owns of an object in 22 characters. It stays equal as long as no owned field is changed
// or removed. It is empty if the object has no entry for the manager, because the server does not track the kind or a
// writer removed the entries. Nothing is known about changes then.
type Key string

// keySize is the number of bytes of the hash that are kept.
const keySize = 16

// KeyOf returns the key of an object for a field manager. It is a hash of the object's UID and of the manager's entry
// (operation Apply, no subresource) with its fields, version and time.
//
// The time is included because an apply by another program under the same manager's name can change values and leave
// the fields alone. The UID is included because a restored object has the old entry.
//
// Typed, unstructured and metadata-only forms of the same object have the same key.
func KeyOf(obj metav1.Object, manager string) Key {
	entry, ok := Entry(obj, manager)
	if !ok {
		return ""
	}
	fields, ok := canonical(entry.FieldsV1)
	if !ok {
		return ""
	}
	// A UID, a version or a time never contains a NUL, so different inputs always differ.
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(obj.GetUID()), []byte(entry.APIVersion), seconds(entry.Time), fields}, []byte{0}))
	return Key(base64.RawURLEncoding.EncodeToString(sum[:keySize]))
}

// Entry returns the entry of managedFields for what a manager applied to the main resource. It returns false if there
// is none.
func Entry(obj metav1.Object, manager string) (metav1.ManagedFieldsEntry, bool) {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry, true
		}
	}
	return metav1.ManagedFieldsEntry{}, false
}

// canonical returns the same bytes for the same fields, whatever their order and escaping. Unstructured objects order
// keys such as k:{"containerPort":9} and k:{"containerPort":10} differently from the server.
func canonical(fields *metav1.FieldsV1) ([]byte, bool) {
	if fields == nil {
		return nil, false
	}
	var tree any
	if err := json.Unmarshal(fields.GetRawBytes(), &tree); err != nil {
		return nil, false
	}
	out, err := json.Marshal(tree)
	return out, err == nil && tree != nil
}

// seconds returns the time as the server stores it. An entry may have none.
func seconds(t *metav1.Time) []byte {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UTC().AppendFormat(nil, time.RFC3339)
}
