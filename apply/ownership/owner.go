// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Prefix is the prefix of the labels and annotations that only the engine writes.
const Prefix = "deployerkit.dev/"

// These are the labels and annotations of an object that belongs to a deploy item.
const (
	// LabelItem holds the UID of the item.
	LabelItem = Prefix + "item"
	// AnnotationLandscape identifies the cluster that contains the item. Its value is the UID of the namespace
	// kube-system, or identifies the API server where that namespace must not be read.
	AnnotationLandscape = Prefix + "landscape"
	// AnnotationNamespace holds the namespace of the item.
	AnnotationNamespace = Prefix + "item-namespace"
	// AnnotationName holds the name of the item.
	AnnotationName = Prefix + "item-name"
)

const (
	managerPrefix = "deployerkit-"
	patchSuffix   = "-patch"
)

// Owner is the deploy item that objects belong to. UID is never empty for an item that exists. The other fields are
// empty if the annotations were removed.
type Owner struct {
	UID             types.UID
	Landscape       types.UID
	Namespace, Name string
	// Alias is another identity of the same landscape. Objects may carry it if they were made while the first
	// identity could not be read. Stamp does not write it.
	Alias types.UID
}

// Manager returns the field manager of everything that the item applies. No two items share one, so the server itself
// detects when an item writes to an object of another.
func (o Owner) Manager() string { return ManagerFor(o.UID) }

// ManagerFor returns the field manager of the item with a UID, for callers that know only the label of an object.
func ManagerFor(item types.UID) string { return managerPrefix + string(item) }

// IsManager reports whether a field manager is the Manager of an item.
func IsManager(name string) bool {
	return strings.HasPrefix(name, managerPrefix) && !strings.HasSuffix(name, patchSuffix)
}

// PatchManager returns the field manager of patches that the item sends in addition to what it applied. It differs
// from Manager, so such a patch does not look like another program's apply under the item's name.
func (o Owner) PatchManager() string { return PatchManagerOf(o.Manager()) }

// PatchManagerOf returns the PatchManager that belongs to a Manager.
func PatchManagerOf(manager string) string { return manager + patchSuffix }

// Stamp writes the owner into the object's labels and annotations and leaves all others as they are. If labels or
// annotations are not a map, Stamp leaves them alone and the server refuses them.
func (o Owner) Stamp(obj *unstructured.Unstructured) {
	set(obj, "labels", map[string]string{LabelItem: string(o.UID)})
	set(obj, "annotations", map[string]string{
		AnnotationLandscape: string(o.Landscape),
		AnnotationNamespace: o.Namespace,
		AnnotationName:      o.Name,
	})
}

// set works on the raw map, because the accessors of unstructured drop all labels if one is not a string.
func set(obj *unstructured.Unstructured, field string, values map[string]string) {
	for key, value := range values {
		_ = unstructured.SetNestedField(obj.Object, value, "metadata", field, key)
	}
}

// OwnerOf returns the owner of an object. It returns false if the object belongs to no item.
func OwnerOf(obj metav1.Object) (Owner, bool) {
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

// SameItem reports whether both are the same item, possibly in another life. The UIDs are equal, or landscape,
// namespace and name are. Unknown landscapes or names are not equal to anything.
func (o Owner) SameItem(other Owner) bool {
	if o.UID != "" && o.UID == other.UID {
		return true
	}
	known := o.Namespace != "" && o.Name != ""
	return known && o.SameLandscape(other) && o.Namespace == other.Namespace && o.Name == other.Name
}

// SameLandscape reports whether the items of both belong to the same Landscaper cluster. An unknown landscape is not
// equal to anything.
func (o Owner) SameLandscape(other Owner) bool {
	equal := func(a, b types.UID) bool { return a != "" && a == b }
	return equal(o.Landscape, other.Landscape) || equal(o.Alias, other.Landscape) || equal(o.Landscape, other.Alias)
}

// String returns the name of the item for messages, which is namespace/name, or the UID if the name is not known.
func (o Owner) String() string {
	if o.Name == "" {
		return "item " + string(o.UID)
	}
	return o.Namespace + "/" + o.Name
}

// IsReserved reports whether a label or annotation key belongs to this library. Manifests and patches of users must
// not contain one.
func IsReserved(key string) bool { return strings.HasPrefix(key, Prefix) }
