// SPDX-License-Identifier: Apache-2.0

package resources_test

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// configuration is the provider configuration of the example. It contains the values of a chart and the fields of
// resources.Spec.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	resources.Spec  `json:",inline"`

	Namespace string         `json:"namespace"`
	Values    map[string]any `json:"values,omitempty"`
}

var (
	version    = schema.GroupVersion{Group: "chart.example.com", Version: "v1alpha1"}
	configKind = version.WithKind("ProviderConfiguration")
	status     = resources.StatusFormat{Kind: version.WithKind("ProviderStatus")}
)

// deployer deploys a chart with a single template: a ConfigMap that contains the values.
type deployer struct {
	deployerlib.Base

	manager *managed.ResourceManager
}

func (d *deployer) UseRuntime(rt deployerlib.Runtime) error { return d.manager.UseRuntime(rt) }

func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.manager.NewHooks(nil) }

// decode decodes the configuration of an item. It allows exports without fromResource, which export values of the
// chart.
func decode(di *lsv1alpha1.DeployItem) (*configuration, *resources.Config, error) {
	chart, err := deployerlib.DecodeConfigAs[configuration](di, configKind)
	if err != nil {
		return nil, nil, err
	}
	config, err := chart.ToConfig(resources.Options{ExportValues: true})
	return chart, &config, err
}

// render returns the objects of the chart.
func (c *configuration) render() ([]apply.Desired, error) {
	return []apply.Desired{{Object: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "values", "namespace": c.Namespace}, "data": c.Values,
	}}}}, nil
}

// begin returns a Run for the current call.
func (d *deployer) begin(ctx context.Context, di *lsv1alpha1.DeployItem) (*resources.Run, error) {
	r, err := resources.Begin(ctx, d.manager, status, di)
	if err != nil {
		return nil, err
	}
	r.EngineOptions = apply.Options{LandscaperLabel: "helm.deployer.landscaper.gardener.cloud/deployitem"}
	return r, nil
}

// Reconcile deploys the chart.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	chart, config, err := decode(di)
	if err != nil {
		return err
	}
	desired, err := chart.render()
	if err != nil {
		return err
	}
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	r.Config = config
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	return r.Deploy(ctx, desired, map[string]any{"Values": chart.Values})
}

// Delete deletes the objects of the chart, even if the configuration has become invalid.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	chart, config, err := decode(di)
	if err != nil {
		return r.Delete(ctx, target, nil)
	}
	r.Config = config
	return r.Delete(ctx, target, chart.render)
}

// ForceReconcile is like Reconcile, but also writes objects that seem to be unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.manager.ForceResync(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// A deployer of another type adds its own fields to the configuration. An error names the invalid field.
func Example() {
	item := func(exports string) *lsv1alpha1.DeployItem {
		di := &lsv1alpha1.DeployItem{}
		di.Spec.Configuration = &runtime.RawExtension{Raw: []byte(`{
			"apiVersion": "chart.example.com/v1alpha1", "kind": "ProviderConfiguration",
			"namespace": "shop", "values": {"host": "shop.example.com"}, "exports": {"exports": [` + exports + `]}}`)}
		return di
	}
	var _ deployerlib.Deployer = &deployer{manager: managed.New(managed.Options{Name: "chart"})}

	chart, config, err := decode(item(`{"key": "host", "jsonPath": ".Values.host"}`))
	fmt.Println(chart.Namespace, config.Exports[0].Key, err)
	_, _, err = decode(item(`{"key": "host"}`))
	fmt.Println(err)
	// Output:
	// shop host <nil>
	// Op: DecodeConfig - Reason: InvalidConfiguration - Message: spec.config.exports.exports[0].jsonPath: "" must not be empty
}
