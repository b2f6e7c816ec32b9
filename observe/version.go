// SPDX-License-Identifier: Apache-2.0

package observe

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/internal/version"
)

// Version identifies a state of an object. The zero value stands for an object that does not exist or is not known.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// GetVersion returns the version of an object.
func GetVersion(obj metav1.Object) Version {
	return Version{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// versionBaseline contains the versions of objects on which a caller has acted.
type versionBaseline map[types.NamespacedName]Version

// newVersionBaseline returns the versions of the given objects. It is not nil.
func newVersionBaseline[T metav1.Object](objects ...T) versionBaseline {
	b := make(versionBaseline, len(objects))
	for _, obj := range objects {
		b[types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}] = GetVersion(obj)
	}
	return b
}

// IsNewerThan reports whether v is a different state than `before`, and not known to be an older one.
func (v Version) IsNewerThan(before Version) bool {
	return v != before && !version.IsOlder(v.ResourceVersion, before.ResourceVersion)
}
