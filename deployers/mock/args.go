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
	// Name is written to status.deployer.name. It is the name of Landscaper's
	// own mock deployer, so that one can take over from the other.
	Name = "mock.deployer.landscaper.gardener.cloud"
)

// Args returns what [deployerlib.Add] needs to run the mock deployer. config:
// identity and target selectors; nil for neither. The hooks run besides the
// deployer's own. The caller may change what is returned; faults of the
// selectors and hooks come from Add.
func Args(config *mockv1alpha1.Configuration, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	args := deployerlib.DeployerArgs{Name: Name, Type: Type, Deployer: New(hooks...)}
	if config != nil {
		args.Identity, args.TargetSelectors = config.Identity, config.TargetSelector
	}
	return args
}
