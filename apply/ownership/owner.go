// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Prefix is the prefix of the labels and annotations that only the engine may write.
const Prefix = "deployerkit.dev/"

// These labels and annotations mark an object that belongs to a deploy item.
const (
	// LabelItem contains the UID of the item.
	LabelItem = Prefix + "item"
	// AnnotationLandscape identifies the cluster that contains the item. Its value is the UID of the kube-system
	// namespace. If the library is not allowed to read that namespace, the value identifies the API server instead.
	AnnotationLandscape = Prefix + "landscape"
	// AnnotationNamespace contains the namespace of the item.
	AnnotationNamespace = Prefix + "item-namespace"
	// AnnotationName contains the name of the item.
	AnnotationName = Prefix + "item-name"
)

// These annotations record what happens to an object when its item no longer needs it. With them, an inventory that was
// lost can be restored from the objects. A client that adds one of them to an object only makes the object stay.
const (
	// AnnotationAdopted marks an object that existed before its item. The object is released instead of deleted.
	AnnotationAdopted = Prefix + "adopted"
	// AnnotationPolicy contains the policy of an object that is never deleted, or PolicyReleased.
	AnnotationPolicy = Prefix + "policy"
)

// PolicyReleased is the value of AnnotationPolicy of an object that its item has left in the cluster on purpose. Any
// item may take over such an object.
const PolicyReleased = "released"

// IsReleased reports whether the item of an object has left the object in the cluster on purpose.
func IsReleased(obj metav1.Object) bool {
	return obj.GetAnnotations()[AnnotationPolicy] == PolicyReleased
}

const (
	managerPrefix = "deployerkit-"
	patchSuffix   = "-patch"
)

// Owner identifies the deploy item that owns an object. If the Owner was read from an object whose annotations were
// removed, all fields except UID are empty.
type Owner struct {
	UID             types.UID
	Landscape       types.UID
	Namespace, Name string
	// LandscapeAlias is a second identity of the Landscaper cluster, or empty. If the UID of the kube-system namespace
	// could not be read when an object was created, AnnotationLandscape of the object contains LandscapeAlias instead of Landscape.
	// Mark does not write it.
	LandscapeAlias types.UID
}

// FieldManager returns the field manager under which the item applies its objects. Each item has its own manager, so
// the API server detects when one item writes to an object of another item.
func (o Owner) FieldManager() string { return FormatFieldManager(o.UID) }

// FormatFieldManager returns the field manager of the item with the given UID. The UID is also the value of the owner
// label, so no complete Owner is needed.
func FormatFieldManager(item types.UID) string { return managerPrefix + string(item) }

// IsFieldManager reports whether name is the field manager of any item.
func IsFieldManager(name string) bool {
	return strings.HasPrefix(name, managerPrefix) && !strings.HasSuffix(name, patchSuffix)
}

// PatchFieldManager returns the field manager of the patches that the item sends in addition to its applies. It differs
// from FieldManager so that such a patch does not look like an apply by another program under the item's manager.
func (o Owner) PatchFieldManager() string { return FormatPatchManager(o.FieldManager()) }

// FormatPatchManager returns the PatchFieldManager of the item that has the given FieldManager.
func FormatPatchManager(manager string) string { return manager + patchSuffix }

// HasWritten reports whether the item has written an object, according to managedFields. The label and the annotations
// do not show this, because other programs copy them to other objects. HasWritten also returns true if the object has
// no managedFields at all, because some API servers do not track who writes an object.
func (o Owner) HasWritten(obj metav1.Object) bool {
	entries := obj.GetManagedFields()
	return len(entries) == 0 || slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == o.FieldManager() || entry.Manager == o.PatchFieldManager()
	})
}

// Mark writes the owner into the object's labels and annotations. It does not change other labels and annotations. If
// the labels or annotations are not a map, Mark does not change them, and the API server rejects the object.
func (o Owner) Mark(obj *unstructured.Unstructured) {
	setValues(obj, "labels", map[string]string{LabelItem: string(o.UID)})
	setValues(obj, "annotations", map[string]string{
		AnnotationLandscape: string(o.Landscape),
		AnnotationNamespace: o.Namespace,
		AnnotationName:      o.Name,
	})
}

// setValues adds values to the labels or annotations of an object. It modifies the raw map because the accessors of
// unstructured drop all labels if one label is not a string.
func setValues(obj *unstructured.Unstructured, field string, values map[string]string) {
	for key, value := range values {
		_ = unstructured.SetNestedField(obj.Object, value, "metadata", field, key)
	}
}

// GetOwner returns the owner of an object. It returns false if the object belongs to no item.
func GetOwner(obj metav1.Object) (Owner, bool) {
	uid := obj.GetLabels()[LabelItem]
	if uid == "" {
		return Owner{}, false
	}
	annotations := obj.GetAnnotations()
	return Owner{
		UID:       types.UID(uid),
		Landscape: types.UID(annotations[AnnotationLandscape]),
		Namespace: annotations[AnnotationNamespace],
		Name:      annotations[AnnotationName],
	}, true
}

// IsSameItem reports whether both owners are the same item or the item was deleted and created again under the same
// name. It returns true if the UIDs are equal, or if landscape, namespace and name are equal. An empty landscape or
// name is not equal to any other, not even to an empty one.
func (o Owner) IsSameItem(other Owner) bool {
	if o.UID != "" && o.UID == other.UID {
		return true
	}
	known := o.Namespace != "" && o.Name != ""
	return known && o.IsSameLandscape(other) && o.Namespace == other.Namespace && o.Name == other.Name
}

// IsSameLandscape reports whether both items belong to the same Landscaper cluster. It returns false if one of the two
// clusters is not known.
func (o Owner) IsSameLandscape(other Owner) bool {
	equal := func(a, b types.UID) bool { return a != "" && a == b }
	return equal(o.Landscape, other.Landscape) || equal(o.LandscapeAlias, other.Landscape) || equal(o.Landscape, other.LandscapeAlias)
}

// String returns the namespace and the name of the item as namespace/name, or the UID if the name is not known.
func (o Owner) String() string {
	if o.Name == "" {
		return "item " + string(o.UID)
	}
	return o.Namespace + "/" + o.Name
}

// AnnotationDeletesItself is an annotation for users' manifests. The value "true" means that the object disappears
// after it has finished its work, and must not be created again then. A Job with ttlSecondsAfterFinished does not need
// it.
const AnnotationDeletesItself = Prefix + "deletes-itself"

// IsReserved reports whether the key of a label or annotation is reserved for this library. The users' manifests and
// patches must not contain such keys, except AnnotationDeletesItself.
func IsReserved(key string) bool {
	return strings.HasPrefix(key, Prefix) && key != AnnotationDeletesItself
}
