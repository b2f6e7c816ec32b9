// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// If an object has several owners, the owner label names only one of them. For each of the other owners, the object has
// an annotation. Its key is sharedPrefix followed by the UID of the owner, and its value is landscape/namespace/name.
const sharedPrefix = Prefix + "owner-"

// GetOwnerAnnotationKey returns the key of the annotation that names the item as an owner of an object, in addition to
// the owner that the label names.
func (o Owner) GetOwnerAnnotationKey() string { return sharedPrefix + string(o.UID) }

// MarkShared marks an object as owned by this item in addition to the owner that the label of the live object names. It
// adds the annotation with the key GetOwnerAnnotationKey, and removes the label and annotations that Mark writes. An
// apply therefore does not overwrite the label and annotations of the other owner.
func (o Owner) MarkShared(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "labels", LabelItem)
	for _, key := range []string{AnnotationLandscape, AnnotationNamespace, AnnotationName} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", key)
	}
	value := strings.Join([]string{string(o.Landscape), o.Namespace, o.Name}, "/")
	setValues(obj, "annotations", map[string]string{o.GetOwnerAnnotationKey(): value})
}

// ListOwners returns all owners of an object without duplicates. The owner that the label names comes first. The other
// owners follow in the order of their UIDs.
func ListOwners(obj metav1.Object) []Owner {
	var out []Owner
	if first, owned := GetOwner(obj); owned {
		out = append(out, first)
	}
	annotations := obj.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		uid, shared := strings.CutPrefix(key, sharedPrefix)
		if !shared || uid == "" || len(out) > 0 && out[0].UID == types.UID(uid) {
			continue
		}
		owner := Owner{UID: types.UID(uid)}
		if parts := strings.Split(annotations[key], "/"); len(parts) == 3 {
			owner.Landscape, owner.Namespace, owner.Name = types.UID(parts[0]), parts[1], parts[2]
		}
		out = append(out, owner)
	}
	return out
}
