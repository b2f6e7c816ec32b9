// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/internal/deletion"
)

// State describes an object as a watch last reported it.
type State struct {
	UID             types.UID
	ResourceVersion string
	// Fingerprint is the fingerprint of the object for the item that the owner label names. It is empty if the server
	// has no managedFields entry for that item.
	Fingerprint ownership.Fingerprint
	// Item is the UID of the item that the owner label names.
	Item types.UID
	// Deleting means that the object has a deletionTimestamp.
	Deleting bool
	// Finalizers contains the finalizers of the object while it is being deleted, at most eight.
	Finalizers []string
	// Changes lists the fields that other managers have written since the item's last write.
	Changes []Change
}

// Version returns the version of the object.
func (s State) Version() Version { return Version{UID: s.UID, ResourceVersion: s.ResourceVersion} }

// storedObject is the part of a watched object that is stored in memory. It takes about 400 bytes, including the memory
// for the map entry.
type storedObject struct {
	name
	item     unique.Handle[string]
	uid      types.UID
	version  string
	key      ownership.Fingerprint
	details  *details // nil for most objects if only metadata is stored
	mark     uint64   // the key of the name of the object's item in an index, see hashName; 0 without owner annotations
	deleting bool
	isKept   bool // the object stays in the cluster on purpose, even if its item does not want it any more
}

// name is the namespace and name of an object. It takes less memory than a NamespacedName.
type name struct {
	namespace unique.Handle[string]
	text      string
}

func newName(full types.NamespacedName) name { return name{unique.Make(full.Namespace), full.Name} }

func (n name) toNamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: n.namespace.Value(), Name: n.text}
}

// details contains the data that is stored only for some objects.
type details struct {
	by         []Change
	finalizers []string // empty unless the object is being deleted

	// content is set only for whole objects. It is the object as compressed JSON, without managedFields; the packer of
	// the store can read it.
	content string
}

// toStoredObject is the transform function of the watches. It is idempotent because the reflector may call it with an
// object that it has already transformed. It never returns an error, because the reflector would then silently omit the
// object. It keeps the resourceVersion because the reflector reads it.
func toStoredObject(obj any) (any, error) {
	if _, done := obj.(*storedObject); done {
		return obj, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // a value that is not an object is returned unchanged
	}
	return newStoredMetadata(m), nil
}

func newStoredMetadata(m metav1.Object) *storedObject {
	item := m.GetLabels()[ownership.LabelItem]
	manager := ownership.FormatFieldManager(types.UID(item))
	r := &storedObject{
		name:     name{unique.Make(m.GetNamespace()), m.GetName()},
		item:     unique.Make(item),
		uid:      m.GetUID(),
		version:  m.GetResourceVersion(),
		key:      ownership.ComputeFingerprint(m, manager),
		mark:     getMark(m),
		deleting: m.GetDeletionTimestamp() != nil,
		isKept:   isKeptOnPurpose(m),
	}
	by, finalizers := listOtherChanges(m, manager), []string(nil)
	if r.deleting {
		finalizers = deletion.LimitNames(m.GetFinalizers())
	}
	if len(by)+len(finalizers) > 0 {
		r.details = &details{by: by, finalizers: finalizers}
	}
	return r
}

func (r *storedObject) getItem() types.UID { return types.UID(r.item.Value()) }

func (r *storedObject) toState() State {
	s := State{UID: r.uid, ResourceVersion: r.version, Fingerprint: r.key, Item: r.getItem(), Deleting: r.deleting}
	if r.details != nil {
		s.Changes, s.Finalizers = r.details.by, r.details.finalizers
	}
	return s
}

// GetObjectMeta returns the metadata of the object. The reflector's own store reads the namespace and the name from it.
func (r *storedObject) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace.Value(), Name: r.text, UID: r.uid, ResourceVersion: r.version}
}
