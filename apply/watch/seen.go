// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"unique"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

// Seen describes an object as a watch knows it.
type Seen struct {
	UID             types.UID
	ResourceVersion string
	// Key is the key of the fields that the item in the owner label owns. It is empty if the server keeps no entry
	// for it.
	Key ownership.Key
	// Item is the UID in the owner label.
	Item types.UID
	// Deleting means that the object has a deletionTimestamp.
	Deleting bool
	// By contains what others wrote since the item's last write.
	By []Change
}

// reduced is what is kept in memory of a watched object, about 400 bytes including its place in the store.
type reduced struct {
	namespace unique.Handle[string]
	item      unique.Handle[string]
	name      string
	uid       types.UID
	version   string
	key       ownership.Key
	by        *[]Change // nil for nearly all objects
	deleting  bool
}

// reduce is the transform of the watches. The reflector calls it more than once for an object, even with its own
// result, and an object for which it failed would silently be missing. reduce is therefore idempotent, never fails,
// and keeps the resourceVersion.
func reduce(obj any) (any, error) {
	if _, done := obj.(*reduced); done {
		return obj, nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil //nolint:nilerr // anything that is not an object stays as it is
	}
	return reduceMeta(m), nil
}

func reduceMeta(m metav1.Object) *reduced {
	item := m.GetLabels()[ownership.LabelItem]
	manager := ownership.ManagerFor(types.UID(item))
	r := &reduced{
		namespace: unique.Make(m.GetNamespace()),
		item:      unique.Make(item),
		name:      m.GetName(),
		uid:       m.GetUID(),
		version:   m.GetResourceVersion(),
		key:       ownership.KeyOf(m, manager),
		deleting:  m.GetDeletionTimestamp() != nil,
	}
	if by := blame(m, manager); len(by) > 0 {
		r.by = &by
	}
	return r
}

func (r *reduced) id() types.NamespacedName {
	return types.NamespacedName{Namespace: r.namespace.Value(), Name: r.name}
}

func (r *reduced) owner() types.UID { return types.UID(r.item.Value()) }

func (r *reduced) seen() Seen {
	s := Seen{UID: r.uid, ResourceVersion: r.version, Key: r.key, Item: r.owner(), Deleting: r.deleting}
	if r.by != nil {
		s.By = *r.by
	}
	return s
}

// GetObjectMeta lets the reflector's own store find name and namespace.
func (r *reduced) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.namespace.Value(), Name: r.name, UID: r.uid, ResourceVersion: r.version}
}
