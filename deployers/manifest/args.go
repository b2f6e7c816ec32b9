// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

const (
	// Type is the type of the deploy items that the manifest deployer is responsible for.
	Type lsv1alpha1.DeployItemType = "landscaper.gardener.cloud/kubernetes-manifest"
	// Name is written to status.deployer.name. It is the name of Landscaper's own manifest deployer, so that one can
	// take over from the other.
	Name = "manifest.deployer.landscaper.gardener.cloud"
)

// Args returns what [deployerlib.Add] needs to run the manifest deployer. config contains identity, target selectors
// and workers, and may be nil. The hooks run in addition to the deployer's own. The caller may change the result. Add
// reports faults of options, selectors and hooks.
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
