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

// sharedPrefix begins the annotation of an owner that is not the one in the
// label; the UID of the item follows. Its value is landscape/namespace/name.
const sharedPrefix = Prefix + "owner-"

// SharedKey returns the annotation that records the item as an owner besides the
// one in the label.
func (o Owner) SharedKey() string { return sharedPrefix + string(o.UID) }

// StampShared writes the owner onto an object whose label names another owner:
// as an annotation of its own. It removes what Stamp writes, so that an apply
// leaves the marks of the other owner alone.
func (o Owner) StampShared(obj *unstructured.Unstructured) {
	unstructured.RemoveNestedField(obj.Object, "metadata", "labels", LabelItem)
	for _, key := range []string{AnnotationLandscape, AnnotationNamespace, AnnotationName} {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations", key)
	}
	value := strings.Join([]string{string(o.Landscape), o.Namespace, o.Name}, "/")
	set(obj, "annotations", map[string]string{o.SharedKey(): value})
}

// OwnersOf lists all owners of an object, each once: the one in the label first,
// then the others by UID.
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
