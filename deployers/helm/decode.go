// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// strategies are the update strategies that an item in manifest mode may use.
var strategies = []apply.Strategy{apply.StrategyApply, apply.StrategyUpdate, apply.StrategyPatch, apply.StrategyMerge, apply.StrategyMergeOverwrite}

// Decode decodes and validates the configuration of an item. It also finds errors that Landscaper's own Helm deployer
// reports only later. It fetches nothing. The error is one of deployerlib.NewConfigError with the path of the first
// invalid field. It contains no values.
func Decode(di *lsv1alpha1.DeployItem, opts Options) (*Config, error) {
	in, err := deployerlib.DecodeConfigAs[wire](di, configKind)
	if err != nil {
		return nil, err
	}
	if len(in.Kubeconfig) > 0 {
		return nil, newConfigError("kubeconfig", "not supported: put the kubeconfig into a Target of type landscaper.gardener.cloud/kubernetes-cluster and refer to that Target in spec.target")
	}
	config := &Config{
		Chart: in.Chart, Name: in.Name, Namespace: in.Namespace, CreateNamespace: in.CreateNamespace,
		HelmDeployment: ptr.Deref(in.HelmDeployment, true),
		Strategy:       apply.Strategy(cmp.Or(in.UpdateStrategy, string(opts.Strategy), string(apply.StrategyApply))),
		Extension:      in.DeployerKit,
	}
	for _, check := range []func(*wire, Options) error{
		config.checkRelease, config.checkChart, config.setValues, config.setOperations, config.checkExtension, config.setShared,
	} {
		if err := check(in, opts); err != nil {
			return nil, err
		}
	}
	return config, nil
}

// newConfigError returns an error of NewConfigError at a path of the configuration.
func newConfigError(path, format string, args ...any) error {
	return deployerlib.NewConfigError("spec.config."+path, format, args...)
}

// checkRelease validates the release and the update strategy.
func (c *Config) checkRelease(*wire, Options) error {
	if !slices.Contains(strategies, c.Strategy) {
		return newConfigError("updateStrategy", "is %q, want one of %q", c.Strategy, strategies)
	}
	if c.Name == "" {
		return newConfigError("name", "required")
	}
	if release.ValidateName(c.Name) != nil {
		return newConfigError("name", "%q is not the name of a release: it must have at most 53 characters and consist of lower case letters, digits, '-' and '.'", c.Name)
	}
	if c.Namespace == "" {
		return newConfigError("namespace", "required")
	}
	if faults := validation.IsDNS1123Label(c.Namespace); len(faults) > 0 {
		return newConfigError("namespace", "%q: %s", c.Namespace, faults[0])
	}
	return nil
}

// checkChart checks that exactly one source of the chart is set.
func (c *Config) checkChart(*wire, Options) error {
	var set []string
	chart := &c.Chart
	add := func(path string, isSet bool) {
		if isSet {
			set = append(set, path)
		}
	}
	if chart.FromResource != nil {
		return newConfigError("chart.fromResource", "no longer supported: use chart.resourceRef, chart.ref or chart.helmChartRepo")
	}
	add("archive", chart.Archive != nil)
	add("ref", chart.Ref != "")
	add("helmChartRepo", chart.HelmChartRepo != nil)
	add("resourceRef", chart.ResourceRef != "")
	switch len(set) {
	case 0:
		return newConfigError("chart", "must have one of archive, ref, helmChartRepo and resourceRef")
	case 1:
	default:
		return newConfigError("chart", "must have only one source, has %s", strings.Join(set, " and "))
	}
	switch {
	case chart.Archive != nil:
		return checkArchive(chart.Archive)
	case chart.HelmChartRepo != nil:
		return checkRepository(chart.HelmChartRepo)
	}
	return nil
}

func checkArchive(archive *helmv1alpha1.ArchiveAccess) error {
	if (archive.Raw != "") == (archive.Remote != nil) {
		return newConfigError("chart.archive", "must have either raw or remote")
	}
	if archive.Remote == nil {
		return nil
	}
	return checkURL("chart.archive.remote.url", archive.Remote.URL)
}

// checkURL validates an address. The error does not contain the address, because it may contain a password.
func checkURL(path, text string) error {
	if text == "" {
		return newConfigError(path, "required")
	}
	address, err := url.Parse(text)
	if err != nil || address.Host == "" {
		return newConfigError(path, "is not a URL")
	}
	if address.User != nil {
		return newConfigError(path, "must not contain credentials")
	}
	return nil
}

func checkRepository(repo *helmv1alpha1.HelmChartRepo) error {
	for _, field := range []struct{ name, value string }{
		{"helmChartRepoUrl", repo.HelmChartRepoUrl}, {"helmChartName", repo.HelmChartName}, {"helmChartVersion", repo.HelmChartVersion},
	} {
		if field.value == "" {
			return newConfigError("chart.helmChartRepo."+field.name, "required")
		}
	}
	address := repo.HelmChartRepoUrl
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return checkURL("chart.helmChartRepo.helmChartRepoUrl", address)
}

// setValues decodes the values.
func (c *Config) setValues(in *wire, _ Options) error {
	var err error
	if c.Values, err = release.DecodeValues(in.Values); err != nil {
		return newConfigError("values", "%s", err.Error())
	}
	return nil
}

// setOperations decodes the settings of the operations.
func (c *Config) setOperations(in *wire, _ Options) error {
	if in.HelmDeploymentConfig == nil {
		return nil
	}
	var uninstall OperationConfig
	for _, operation := range []struct {
		name   string
		raw    map[string]lsv1alpha1.AnyJSON
		into   *OperationConfig
		fields []string
	}{
		{"install", in.HelmDeploymentConfig.Install, &c.Install, operationFields},
		{"upgrade", in.HelmDeploymentConfig.Upgrade, &c.Upgrade, operationFields},
		{"uninstall", in.HelmDeploymentConfig.Uninstall, &uninstall, uninstallFields},
	} {
		if err := decodeOperation("helmDeploymentConfig."+operation.name, operation.raw, operation.into, operation.fields); err != nil {
			return err
		}
	}
	c.Uninstall.Timeout = uninstall.Timeout
	return nil
}

var (
	operationFields = []string{"atomic", "force", "skipSchemaValidation", "takeOwnership", "timeout", "wait"}
	uninstallFields = []string{"timeout", "wait"}
)

// decodeOperation decodes the settings of an operation.
func decodeOperation(path string, raw map[string]lsv1alpha1.AnyJSON, into *OperationConfig, fields []string) error {
	flags := map[string]*bool{
		"atomic": &into.Atomic, "force": &into.Force, "skipSchemaValidation": &into.SkipSchemaValidation,
		"takeOwnership": &into.TakeOwnership, "wait": &into.Wait,
	}
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		at, value := path+"."+name, bytes.TrimSpace(raw[name].RawMessage)
		switch {
		case !slices.Contains(fields, name):
			return newConfigError(at, "unknown field, want one of %q", fields)
		case name == "timeout":
			timeout, err := decodeTimeout(value)
			if err != nil {
				return newConfigError(at, "%s", err.Error())
			}
			into.Timeout = timeout
		case json.Unmarshal(value, flags[name]) != nil:
			return newConfigError(at, "must be true or false")
		}
	}
	return nil
}

// decodeTimeout decodes a duration such as "5m". Null and "none" stand for no limit.
func decodeTimeout(raw []byte) (time.Duration, error) {
	var timeout lsv1alpha1.Duration
	if err := json.Unmarshal(raw, &timeout); err != nil {
		return 0, fmt.Errorf(`must be a duration such as "5m", or "none"`)
	}
	if timeout.Duration < 0 {
		return 0, fmt.Errorf("is %s, must not be negative", timeout.Duration)
	}
	return timeout.Duration, nil
}

// checkExtension validates the field deployerkit.
func (c *Config) checkExtension(*wire, Options) error {
	if verify := c.Extension.Verify; verify != nil && verify.Name == "" {
		return newConfigError("deployerkit.verify.name", "required")
	}
	if err := c.Extension.CRDs.check(c.HelmDeployment); err != nil {
		return err
	}
	if hooks := c.Extension.Hooks; hooks != "" && hooks != HooksApply {
		return newConfigError("deployerkit.hooks", "is %q, want %q or nothing", hooks, HooksApply)
	}
	if c.Extension.Hooks == HooksApply && c.HelmDeployment {
		return newConfigError("deployerkit.hooks", "is supported only if helmDeployment is false")
	}
	if err := c.Extension.Test.check(c.HelmDeployment); err != nil {
		return err
	}
	return c.Extension.Drift.check()
}

// check validates the policies.
func (c CRDsConfig) check(helmDeployment bool) error {
	policies := []CRDPolicy{CRDsSkip, CRDsCreate, CRDsCreateReplace}
	for _, field := range []struct {
		name   string
		policy CRDPolicy
	}{{"install", c.Install}, {"upgrade", c.Upgrade}} {
		if field.policy != "" && !slices.Contains(policies, field.policy) {
			return newConfigError("deployerkit.crds."+field.name, "is %q, want one of %q", field.policy, policies)
		}
		if c.Delete && field.policy != "" && field.policy != CRDsCreateReplace {
			return newConfigError("deployerkit.crds."+field.name, "is %q, must be %q or empty because deployerkit.crds.delete is true", field.policy, CRDsCreateReplace)
		}
	}
	if c.Delete && helmDeployment {
		return newConfigError("deployerkit.crds.delete", "is supported only if helmDeployment is false, because Helm never deletes CustomResourceDefinitions")
	}
	return nil
}

// setShared sets the fields that the deployer has in common with the manifest deployer.
func (c *Config) setShared(in *wire, opts Options) error {
	if c.HelmDeployment {
		switch {
		case len(in.DeletionGroups) > 0:
			return newConfigError("deletionGroups", "is supported only if helmDeployment is false, because Helm determines the order of the deletion")
		case len(in.DeletionGroupsDuringUpdate) > 0:
			return newConfigError("deletionGroupsDuringUpdate", "is supported only if helmDeployment is false, because Helm determines the order of the deletion")
		}
	}
	shared := resources.Options{ExportTimeout: opts.ExportTimeout, ExportValues: true}
	var err error
	if c.Config, err = in.ToConfig(shared); err != nil {
		return err
	}
	shared.ExportValues = false
	more, err := resources.PrepareExports("exportsFromManifests", in.ExportsFromManifests, shared)
	c.Exports = append(c.Exports, more...)
	return err
}
