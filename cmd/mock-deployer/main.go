// SPDX-License-Identifier: Apache-2.0

// Command mock-deployer runs the mock deployer of package deployers/mock.
package main

import (
	"os"

	mockv1alpha1 "github.com/gardener/landscaper/apis/deployer/mock/v1alpha1"

	"github.com/deployerkit/deployerkit/cmd/internal/deployer"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

func main() {
	os.Exit(deployer.Main(deployer.Program{
		Name: "mock-deployer", Short: "Does to deploy items what their configuration says", Args: args,
	}))
}

// args reads the configuration of the controller: identity and target selectors.
func args(configFile string) (deployerlib.DeployerArgs, error) {
	kind := mockv1alpha1.SchemeGroupVersion.WithKind("Configuration")
	config, err := deployer.ReadConfig[mockv1alpha1.Configuration](configFile, kind)
	if err != nil {
		return deployerlib.DeployerArgs{}, err
	}
	return mock.Args(config), nil
}
