// SPDX-License-Identifier: Apache-2.0

// Command galera-deployer runs a Galera cluster for each of its deploy items. See package galera.
package main

import (
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

var program = deployermain.Program{
	Short: "Runs Galera clusters for its deploy items",
	NewArgs: func() (deployerlib.DeployerArgs, error) {
		graph, err := galera.BuildGraph()
		if err != nil {
			return deployerlib.DeployerArgs{}, err
		}
		options := stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}} // allows a cluster on this machine
		return stategraph.Args("galera-deployer", "example.org/galera", graph, options), nil
	},
}

func main() { deployermain.Run(program) }
