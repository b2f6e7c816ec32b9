// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names an object of a cluster. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	APIVersion, Kind, Namespace, Name string
}

// RefOf returns the name of an object.
func RefOf(obj *unstructured.Unstructured) Ref {
	return Ref{APIVersion: obj.GetAPIVersion(), Kind: obj.GetKind(), Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// GVK returns group, version and kind. An apiVersion that cannot be parsed counts as a version.
func (r Ref) GVK() schema.GroupVersionKind { return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind) }

// Key returns namespace and name.
func (r Ref) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// String returns the name for people, such as "Deployment.apps shop/web".
func (r Ref) String() string {
	return strings.TrimSpace(r.GVK().GroupKind().String() + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}

// id returns a Ref that is the same for all versions of one object.
func (r Ref) id() Ref {
	r.APIVersion = r.GVK().Group
	return r
}

// compareRefs orders by kind, then namespace, then name.
func compareRefs(a, b Ref) int {
	return cmp.Or(
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}

// empty returns an object that contains only its name and kind.
func (r Ref) empty() *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(r.APIVersion)
	obj.SetKind(r.Kind)
	obj.SetNamespace(r.Namespace)
	obj.SetName(r.Name)
	return obj
}
