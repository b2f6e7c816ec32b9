// SPDX-License-Identifier: Apache-2.0

package object

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref identifies an object in a cluster. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

// ToRef returns the reference to an object.
func ToRef(obj *unstructured.Unstructured) Ref {
	return Ref{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GVK returns group, version and kind. If the APIVersion cannot be parsed, it is returned as the version.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// Key returns the namespace and the name.
func (r Ref) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// String returns the reference as text for users, such as "Deployment.apps shop/web".
func (r Ref) String() string {
	return strings.TrimSpace(r.GVK().GroupKind().String() + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}

// New returns an object that has only an API version, a kind, a namespace and a name.
func New(r Ref) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(r.APIVersion)
	obj.SetKind(r.Kind)
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	return obj
}

// FormatAPIVersion returns the API version of a reference for another version of the kind.
func FormatAPIVersion(r Ref, version string) string {
	return schema.GroupVersion{Group: r.GVK().Group, Version: version}.String()
}

// IsNamespace reports whether a kind is Namespace.
func IsNamespace(gk schema.GroupKind) bool { return gk == schema.GroupKind{Kind: "Namespace"} }

// KindDefinition is the kind of a CustomResourceDefinition.
const KindDefinition = "CustomResourceDefinition"

// IsDefinition reports whether a kind is CustomResourceDefinition.
func IsDefinition(gk schema.GroupKind) bool {
	return gk == schema.GroupKind{Group: "apiextensions.k8s.io", Kind: KindDefinition}
}
