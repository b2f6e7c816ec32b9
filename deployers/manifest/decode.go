// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/gardener/landscaper/apis/deployer/utils/managedresource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply/readiness"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// strategies are the strategies that an item may use.
var strategies = []manifestv1alpha2.UpdateStrategy{
	StrategyApply, manifestv1alpha2.UpdateStrategyUpdate, manifestv1alpha2.UpdateStrategyPatch,
	manifestv1alpha2.UpdateStrategyMerge, manifestv1alpha2.UpdateStrategyMergeOverwrite,
}

// Decode reads an item's configuration of either version and checks all of it, including what Landscaper's own manifest
// deployer accepts and fails on later. It reads nothing from a cluster. The error is a deployerlib.ConfigError with the
// path of the first fault.
func Decode(di *lsv1alpha1.DeployItem, opts Options) (*Config, error) {
	in, err := read(di)
	if err != nil {
		return nil, err
	}
	if len(in.Kubeconfig) > 0 {
		return nil, fault("kubeconfig", "not supported: put the kubeconfig into a Target of type landscaper.gardener.cloud/kubernetes-cluster and name that in spec.target")
	}
	config := &Config{
		Strategy:       cmp.Or(in.UpdateStrategy, opts.Strategy, StrategyApply),
		Manifests:      slices.Clone(in.Manifests),
		DeletionGroups: in.DeletionGroups, DeletionGroupsDuringUpdate: in.DeletionGroupsDuringUpdate,
	}
	for _, step := range []func() error{
		func() error { return checkStrategy(config.Strategy) },
		func() error { return config.setManifests() },
		func() error { return config.setReadiness(in.ReadinessChecks) },
		func() error { return config.setExports(in.Exports, opts) },
		func() error { return config.setSchedule(in.ContinuousReconcile) },
		func() error { return checkGroups("deletionGroups", config.DeletionGroups) },
		func() error { return checkGroups("deletionGroupsDuringUpdate", config.DeletionGroupsDuringUpdate) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	config.DeleteTimeout, err = bound("deleteTimeout", in.DeleteTimeout)
	if err != nil {
		return nil, err
	}
	return config, nil
}

// read decodes strictly, and converts the older version.
func read(di *lsv1alpha1.DeployItem) (*wire[managedresource.Manifest], error) {
	var meta metav1.TypeMeta
	if di.Spec.Configuration != nil {
		_ = json.Unmarshal(di.Spec.Configuration.Raw, &meta) // faults are reported below
	}
	if meta.GroupVersionKind() != kindV1alpha1 {
		return deployerlib.DecodeConfigAs[wire[managedresource.Manifest]](di, kindV1alpha2)
	}
	old, err := deployerlib.DecodeConfigAs[wire[*runtime.RawExtension]](di, kindV1alpha1)
	if err != nil {
		return nil, err
	}
	if old.ContinuousReconcile != nil {
		return nil, fault("continuousReconcile", "unknown field in v1alpha1: use %s", kindV1alpha2.GroupVersion())
	}
	return widen(old), nil
}

// fault returns a ConfigError at a path of the configuration.
func fault(path, format string, args ...any) error {
	return deployerlib.ConfigError("spec.config."+path, format, args...)
}

func checkStrategy(strategy manifestv1alpha2.UpdateStrategy) error {
	if !slices.Contains(strategies, strategy) {
		return fault("updateStrategy", "is %q, want one of %q", strategy, strategies)
	}
	return nil
}

// setReadiness checks and prepares the readiness checks.
func (c *Config) setReadiness(in *wireReadiness) error {
	if in == nil {
		return nil
	}
	c.DisableDefaultReadiness = in.DisableDefault
	var err error
	if c.ReadinessTimeout, err = bound("readinessChecks.timeout", in.Timeout); err != nil {
		return err
	}
	for i, item := range in.Custom {
		path := fmt.Sprintf("readinessChecks.custom[%d]", i)
		check := Check{}
		if check.Check, err = readiness.Compile(item.CustomReadinessCheckConfiguration); err != nil {
			if spec, ok := errors.AsType[*readiness.SpecError](err); ok {
				return fault(path+"."+spec.Path, "%s", spec.Reason)
			}
			return fault(path, "%s", err.Error())
		}
		if check.Timeout, err = bound(path+".timeout", item.Timeout); err != nil {
			return err
		}
		c.Checks = append(c.Checks, check)
	}
	return nil
}

// setSchedule checks the schedule. An empty one means none.
func (c *Config) setSchedule(in *wireSchedule) error {
	if in == nil {
		return nil
	}
	if _, err := bound("continuousReconcile.every", in.Every); err != nil {
		return err
	}
	spec := in.schedule()
	schedule, err := continuousreconcile.Schedule(spec)
	if err != nil {
		return fault("continuousReconcile", "%s", err.Error())
	}
	if schedule != nil {
		c.ContinuousReconcile = spec
	}
	return nil
}
