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

// Key stands for what an item owns of an object: 22 characters, equal exactly as long as nobody changed or
// removed an owned field. Empty: the object has no entry for the manager, because the kind is not tracked by the
// server or somebody wiped the entries; nothing can be said then.
type Key string

// keySize is how much of the hash is kept, in bytes.
const keySize = 16

// KeyOf is the key of an object for a field manager: a hash of the object's UID and of the manager's entry
// (operation Apply, no subresource) with its fields, version and time.
//
// The time is part of it because an apply by somebody else under our manager's name can change values and leave
// the fields alone. The UID is part of it because a restored object has the old entry.
//
// Typed, unstructured and metadata-only forms of one object have the same key.
func KeyOf(obj metav1.Object, manager string) Key {
	entry, ok := Entry(obj, manager)
	if !ok {
		return ""
	}
	fields, ok := canonical(entry.FieldsV1)
	if !ok {
		return ""
	}
	// Neither a UID nor a version nor a time contains a NUL, so no two different inputs look the same.
	sum := sha256.Sum256(bytes.Join([][]byte{[]byte(obj.GetUID()), []byte(entry.APIVersion), seconds(entry.Time), fields}, []byte{0}))
	return Key(base64.RawURLEncoding.EncodeToString(sum[:keySize]))
}

// Entry is what managedFields holds for what a manager applied to the main resource. false: nothing.
func Entry(obj metav1.Object, manager string) (metav1.ManagedFieldsEntry, bool) {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" {
			return entry, true
		}
	}
	return metav1.ManagedFieldsEntry{}, false
}

// canonical gives the same bytes for the same fields, in whatever order and escaping they came: unstructured
// objects order keys such as k:{"containerPort":9} and k:{"containerPort":10} differently from the server.
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

// seconds is the time as the server stores it. An entry may have none.
func seconds(t *metav1.Time) []byte {
	if t == nil || t.IsZero() {
		return nil
	}
	return t.UTC().AppendFormat(nil, time.RFC3339)
}
