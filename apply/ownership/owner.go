// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Prefix of the labels and annotations that only the engine writes.
const Prefix = "deployerkit.dev/"

// Labels and annotations of an object that belongs to a deploy item.
const (
	// LabelItem holds the UID of the item.
	LabelItem = Prefix + "item"
	// AnnotationLandscape identifies the cluster that the item lies in: by the UID of its namespace kube-system, or where
	// that must not be read by its API server.
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

// Owner is the deploy item that objects belong to. UID is never empty for an item that exists; the other fields
// are empty if somebody removed the annotations.
type Owner struct {
	UID             types.UID
	Landscape       types.UID
	Namespace, Name string
	// Alias is another identity of the same landscape, which objects may carry that were made while its first one
	// could not be read. Objects do not name it.
	Alias types.UID
}

// Manager is the field manager of everything that the item applies. No two items share one, so that the server
// itself tells when one item writes to an object of another.
func (o Owner) Manager() string { return ManagerFor(o.UID) }

// ManagerFor is the field manager of the item with a UID, for those who know only the label of an object.
func ManagerFor(item types.UID) string { return managerPrefix + string(item) }

// IsManager reports whether a field manager is the Manager of an item.
func IsManager(name string) bool {
	return strings.HasPrefix(name, managerPrefix) && !strings.HasSuffix(name, patchSuffix)
}

// PatchManager is the field manager of patches that the item sends on top of what it applied. It differs from
// Manager, so that such a patch does not look like a change by somebody else's apply under our name.
func (o Owner) PatchManager() string { return PatchManagerOf(o.Manager()) }

// PatchManagerOf is the PatchManager that goes with a Manager.
func PatchManagerOf(manager string) string { return manager + patchSuffix }

// Stamp writes the owner into the object's labels and annotations and leaves all others as they are. Labels or
// annotations that are no map are left alone; the server refuses them.
func (o Owner) Stamp(obj *unstructured.Unstructured) {
	set(obj, "labels", map[string]string{LabelItem: string(o.UID)})
	set(obj, "annotations", map[string]string{
		AnnotationLandscape: string(o.Landscape),
		AnnotationNamespace: o.Namespace,
		AnnotationName:      o.Name,
	})
}

// set works on the raw map: the accessors of unstructured would drop all labels if one is not a string.
func set(obj *unstructured.Unstructured, field string, values map[string]string) {
	for key, value := range values {
		_ = unstructured.SetNestedField(obj.Object, value, "metadata", field, key)
	}
}

// OwnerOf reads the owner of an object. false: the object belongs to no item.
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

// SameItem says whether both are the same item, be it in another life: the UIDs are equal, or landscape,
// namespace and name are. Unknown landscapes or names are equal to nothing.
func (o Owner) SameItem(other Owner) bool {
	if o.UID != "" && o.UID == other.UID {
		return true
	}
	known := o.Namespace != "" && o.Name != ""
	return known && o.SameLandscape(other) && o.Namespace == other.Namespace && o.Name == other.Name
}

// SameLandscape reports whether the items of both lie in the same Landscaper cluster. An unknown landscape is equal to nothing.
func (o Owner) SameLandscape(other Owner) bool {
	equal := func(a, b types.UID) bool { return a != "" && a == b }
	return equal(o.Landscape, other.Landscape) || equal(o.Alias, other.Landscape) || equal(o.Landscape, other.Alias)
}

// String names the item for messages: namespace/name, or the UID if the name is not known.
func (o Owner) String() string {
	if o.Name == "" {
		return "item " + string(o.UID)
	}
	return o.Namespace + "/" + o.Name
}

// IsReserved says whether a label or annotation key is ours. Manifests and patches of users must not hold one.
func IsReserved(key string) bool { return strings.HasPrefix(key, Prefix) }
