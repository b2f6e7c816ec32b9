// SPDX-License-Identifier: Apache-2.0

package mock

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

const (
	// Type is the type of the deploy items that the mock deployer is responsible for.
	Type lsv1alpha1.DeployItemType = "landscaper.gardener.cloud/mock"
	// Name is the value of status.deployer.name. It is the name of Landscaper's own mock deployer, so that either
	// deployer can replace the other.
	Name = "mock.deployer.landscaper.gardener.cloud"
)

// Args returns the arguments of [deployerlib.Add] for the mock deployer. config has the identity and the target
// selectors; it may be nil. hooks are called in addition to the deployer's own hook. The caller may change the returned
// arguments. Add reports invalid selectors and hooks.
func Args(config *mockv1alpha1.Configuration, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	args := deployerlib.DeployerArgs{Name: Name, Type: Type, Deployer: New(hooks...)}
	if config != nil {
		args.Identity, args.TargetSelectors = config.Identity, config.TargetSelector
	}
	return args
}
