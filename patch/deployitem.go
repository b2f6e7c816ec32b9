// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldDeployer           = "deployer"
	fieldObservedGeneration = "observedGeneration"
)

// statusRules is a kind's own way to compute the status patch; nil means the plain difference.
type statusRules func(base, wanted map[string]any) map[string]any

func rulesFor(obj client.Object) statusRules {
	if _, typed := obj.(*lsv1alpha1.DeployItem); typed {
		return diffDeployItemStatus
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Group == lsv1alpha1.SchemeGroupVersion.Group && gvk.Kind == "DeployItem" {
		return diffDeployItemStatus
	}
	return nil
}

// diffDeployItemStatus keeps the two demands of the DeployItem's schema: a stored status has an
// observedGeneration, and a stored deployer has all its fields. Whether a zero status is stored cannot
// be seen in a typed object, so it counts as absent; sending a value again that is stored is harmless.
func diffDeployItemStatus(base, wanted map[string]any) map[string]any {
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
	out := mergePatch(base, wanted)
	if _, changed := out[fieldDeployer].(map[string]any); changed {
		out[fieldDeployer] = wanted[fieldDeployer]
	}
	return out
}

// withWholeDeployer returns a copy whose deployer is absent if all its fields are empty, and has all
// fields otherwise.
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
	if equal(whole, empty) {
		delete(out, fieldDeployer)
		return out
	}
	out[fieldDeployer] = whole
	return out
}

// isZeroStatus tells that a status holds nothing but an observedGeneration of 0.
func isZeroStatus(status map[string]any) bool {
	generation, exists := status[fieldObservedGeneration]
	return len(status) == 0 || len(status) == 1 && exists && equal(generation, int64(0))
}
