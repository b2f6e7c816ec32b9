// SPDX-License-Identifier: Apache-2.0

package helm

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

const (
	// Type is the type of the deploy items for which the Helm deployer is responsible.
	Type lsv1alpha1.DeployItemType = "landscaper.gardener.cloud/helm"
	// Name is the value of status.deployer.name. Landscaper's own Helm deployer uses the same name, so that each of the
	// two deployers can replace the other.
	Name = "helm.deployer.landscaper.gardener.cloud"
)

// Args returns the arguments of [deployerlib.Add] for the Helm deployer. The parameter `config` contains the identity,
// the target selectors and the number of workers; it may be nil. Its field oci configures Options.Sources, which the
// caller creates. The given hooks are called in addition to the deployer's own hooks. The caller may change the returned
// arguments. Add reports invalid options, selectors and hooks.
func Args(config *helmv1alpha1.Configuration, opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	args := deployerlib.DeployerArgs{Name: Name, Type: Type}
	if config != nil {
		args.Identity, args.TargetSelectors = config.Identity, config.TargetSelector
		args.Options.MaxConcurrentReconciles = config.Controller.Workers
		if config.Controller.CacheSyncTimeout != nil {
			args.Options.CacheSyncTimeout = config.Controller.CacheSyncTimeout.Duration
		}
		if timeout := config.Export.DefaultTimeout; timeout != nil && opts.ExportTimeout == 0 {
			opts.ExportTimeout = timeout.Duration
		}
	}
	args.Deployer = New(opts, hooks...)
	return args
}
