// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheByObject returns cache options for the manager of the Landscaper
// cluster: items of other types than the given ones are kept without
// configuration and status, all items without managed fields. Deployers on one
// manager need one call with all their types. Add works without it; it only
// saves memory.
func CacheByObject(types ...lsv1alpha1.DeployItemType) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&lsv1alpha1.DeployItem{}: {Transform: stripForeign(types)},
	}
}

// stripForeign is idempotent and never fails: the informer calls it more than
// once per object, and would lose objects over an error.
func stripForeign(types []lsv1alpha1.DeployItemType) func(any) (any, error) {
	return func(obj any) (any, error) {
		di, ok := obj.(*lsv1alpha1.DeployItem)
		if !ok {
			return obj, nil
		}
		di.ManagedFields = nil
		if !slices.Contains(types, di.Spec.Type) {
			di.Annotations, di.Labels, di.OwnerReferences = nil, nil, nil
			di.Spec = lsv1alpha1.DeployItemSpec{Type: di.Spec.Type}
			di.Status = lsv1alpha1.DeployItemStatus{}
		}
		return di, nil
	}
}
