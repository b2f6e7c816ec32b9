// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"encoding/json"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// strategies are the update strategies that an item may use.
var strategies = []manifestv1alpha2.UpdateStrategy{
	StrategyApply, manifestv1alpha2.UpdateStrategyUpdate, manifestv1alpha2.UpdateStrategyPatch,
	manifestv1alpha2.UpdateStrategyMerge, manifestv1alpha2.UpdateStrategyMergeOverwrite,
}

// Decode decodes and validates the configuration of an item, in version v1alpha1 or v1alpha2. It also finds errors that
// Landscaper's own manifest deployer reports only later. It reads nothing from a cluster. The error is a
// deployerlib.NewConfigError with the path of the first invalid field.
func Decode(di *lsv1alpha1.DeployItem, opts Options) (*Config, error) {
	in, err := decodeProviderConfiguration(di)
	if err != nil {
		return nil, err
	}
	if len(in.Kubeconfig) > 0 {
		return nil, newConfigError("kubeconfig", "not supported: put the kubeconfig into a Target of type landscaper.gardener.cloud/kubernetes-cluster and refer to that Target in spec.target")
	}
	config := &Config{Strategy: cmp.Or(in.UpdateStrategy, opts.Strategy, StrategyApply), Manifests: slices.Clone(in.Manifests)}
	if !slices.Contains(strategies, config.Strategy) {
		return nil, newConfigError("updateStrategy", "is %q, want one of %q", config.Strategy, strategies)
	}
	if err := config.setManifests(); err != nil {
		return nil, err
	}
	if config.Config, err = in.ToConfig(resources.Options{ExportTimeout: opts.ExportTimeout}); err != nil {
		return nil, err
	}
	return config, nil
}

// decodeProviderConfiguration decodes a configuration strictly and converts v1alpha1 to v1alpha2.
func decodeProviderConfiguration(di *lsv1alpha1.DeployItem) (*providerConfiguration[managedresource.Manifest], error) {
	var meta metav1.TypeMeta
	if di.Spec.Configuration != nil {
		_ = json.Unmarshal(di.Spec.Configuration.Raw, &meta) // DecodeConfigAs reports an invalid configuration
	}
	if meta.GroupVersionKind() != kindV1alpha1 {
		return deployerlib.DecodeConfigAs[providerConfiguration[managedresource.Manifest]](di, kindV1alpha2)
	}
	old, err := deployerlib.DecodeConfigAs[providerConfiguration[*runtime.RawExtension]](di, kindV1alpha1)
	if err != nil {
		return nil, err
	}
	if old.ContinuousReconcile != nil {
		return nil, newConfigError("continuousReconcile", "unknown field in v1alpha1: use %s", kindV1alpha2.GroupVersion())
	}
	return convertToV1alpha2(old), nil
}

// newConfigError returns an error of NewConfigError at a path of the configuration.
func newConfigError(path, format string, args ...any) error {
	return deployerlib.NewConfigError("spec.config."+path, format, args...)
}
