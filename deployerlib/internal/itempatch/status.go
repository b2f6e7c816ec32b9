// SPDX-License-Identifier: Apache-2.0

package itempatch

import (
	"maps"
	"reflect"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/internal/jsondiff"
)

const (
	fieldDeployer           = "deployer"
	fieldObservedGeneration = "observedGeneration"
)

// getStatusDiff returns the function that compares the statuses of two versions of obj. Only deploy items need a
// special function.
func getStatusDiff(obj client.Object) func(base, wanted map[string]any) map[string]any {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, typed := obj.(*lsv1alpha1.DeployItem); typed || gvk.Group == lsv1alpha1.SchemeGroupVersion.Group && gvk.Kind == "DeployItem" {
		return diffStatus
	}
	return jsondiff.MergePatch
}

// diffStatus returns the merge patch from base to wanted, or nil if there is nothing to send. It meets two requirements
// of the schema: a stored status has an observedGeneration, and a stored deployer has all its fields. If base has only
// zero values, diffStatus treats it as absent, because a typed object does not show whether such a status is stored.
// The patch may therefore contain values that are already stored.
func diffStatus(base, wanted map[string]any) map[string]any {
	base, wanted = withWholeDeployer(base), withWholeDeployer(wanted)
	if isZeroStatus(base) {
		if isZeroStatus(wanted) {
			return nil
		}
		base = nil
	}
	if _, exists := wanted[fieldObservedGeneration]; !exists {
		wanted[fieldObservedGeneration] = int64(0)
	}
	out := jsondiff.MergePatch(base, wanted)
	if _, changed := out[fieldDeployer].(map[string]any); changed {
		out[fieldDeployer] = wanted[fieldDeployer]
	}
	return out
}

// withWholeDeployer returns a copy of the status. If all fields of the member "deployer" are empty, the copy does not
// contain this member. Otherwise, the copy contains this member with all fields of a deployer.
func withWholeDeployer(status map[string]any) map[string]any {
	out := maps.Clone(status)
	if out == nil {
		out = map[string]any{}
	}
	deployer, ok := out[fieldDeployer].(map[string]any)
	if !ok {
		return out
	}
	whole := map[string]any{"identity": "", "name": "", "version": ""}
	empty := maps.Clone(whole)
	maps.Copy(whole, deployer)
	if reflect.DeepEqual(whole, empty) {
		delete(out, fieldDeployer)
		return out
	}
	out[fieldDeployer] = whole
	return out
}

// isZeroStatus reports whether a status contains only an observedGeneration of 0.
func isZeroStatus(status map[string]any) bool {
	generation, exists := status[fieldObservedGeneration]
	return len(status) == 0 || len(status) == 1 && exists && jsondiff.Equal(generation, int64(0))
}
