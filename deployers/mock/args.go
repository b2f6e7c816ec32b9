// SPDX-License-Identifier: Apache-2.0

package mock

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

const (
	// Type is the type of the deploy items for which the mock deployer is responsible.
	Type lsv1alpha1.DeployItemType = "landscaper.gardener.cloud/mock"
	// Name is the value of status.deployer.name. Landscaper's own mock deployer uses the same name, so that each of the
	// two deployers can replace the other.
	Name = "mock.deployer.landscaper.gardener.cloud"
)

// Args returns the arguments of [deployerlib.Add] for the mock deployer, with the identity and the target selectors
// from config, which may be nil. The given hooks are called in addition to the deployer's own hook. The caller may
// change the returned arguments. Add reports invalid selectors and hooks.
func Args(config *mockv1alpha1.Configuration, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	args := deployerlib.DeployerArgs{Name: Name, Type: Type, Deployer: New(hooks...)}
	if config != nil {
		args.Identity, args.TargetSelectors = config.Identity, config.TargetSelector
	}
	return args
}
