// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// IsFieldOwner reports whether a manager owns the field at a path, or a field below it, according to the managedFields
// of an object. It considers all entries of the manager that it can read, except those for subresources.
func IsFieldOwner(obj metav1.Object, manager string, path fieldpath.Path) bool {
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager != manager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		set := fieldpath.NewSet()
		if set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		if set.Has(path) {
			return true
		}
		for _, element := range path {
			set = set.WithPrefix(element)
		}
		if !set.Empty() {
			return true
		}
	}
	return false
}
