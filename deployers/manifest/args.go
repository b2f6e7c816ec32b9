// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

const (
	// Type is the type of the deploy items for which the manifest deployer is responsible.
	Type lsv1alpha1.DeployItemType = "landscaper.gardener.cloud/kubernetes-manifest"
	// Name is the value of status.deployer.name. Landscaper's own manifest deployer uses the same name, so that each of
	// the two deployers can replace the other.
	Name = "manifest.deployer.landscaper.gardener.cloud"
)

// Args returns the arguments of [deployerlib.Add] for the manifest deployer, with the identity, the target selectors
// and the number of workers from config, which may be nil. The given hooks are called in addition to the deployer's own
// hooks. The caller may change the returned arguments. Add reports invalid options, selectors and hooks.
func Args(config *manifestv1alpha2.Configuration, opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
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
