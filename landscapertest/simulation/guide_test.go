// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest/simulation"
)

// TestConfigMaps is the first example of the guide.
func TestConfigMaps(t *testing.T) {
	simulation.Run(t, simulation.Scenario{
		Type: "example.com/configmaps", Items: 1, Targets: []string{"first", "second"}, Seeds: 10,
		New: func(p *simulation.Process) deployerlib.DeployerArgs {
			return deployerlib.DeployerArgs{Type: "example.com/configmaps", Deployer: newApplier(p)}
		},
		NewItem: newApplierItem, CheckEnd: checkDeleted,
	})
}
