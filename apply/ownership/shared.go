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

// sharedPrefix is the beginning of the annotation of an owner that the label does not name; the UID of the item
// follows. The value is landscape/namespace/name.
const sharedPrefix = Prefix + "owner-"

// SharedKey returns the annotation that records the item as an owner in addition to the one in the label.
func (o Owner) SharedKey() string { return sharedPrefix + string(o.UID) }

// StampShared writes the owner as a separate annotation to an object whose label names another owner. It removes what
// Stamp writes, so that an apply leaves the marks of the other owner alone.
func (o Owner) StampShared(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "labels", LabelItem)
	for _, key := range []string{AnnotationLandscape, AnnotationNamespace, AnnotationName} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", key)
	}
	value := strings.Join([]string{string(o.Landscape), o.Namespace, o.Name}, "/")
	set(obj, "annotations", map[string]string{o.SharedKey(): value})
}

// OwnersOf returns all owners of an object, each once. The one in the label is first, and the others follow by UID.
func OwnersOf(obj metav1.Object) []Owner {
	var out []Owner
	if first, owned := OwnerOf(obj); owned {
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
