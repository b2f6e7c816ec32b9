// SPDX-License-Identifier: Apache-2.0

// Command manifest-deployer runs the manifest deployer of package
// deployers/manifest.
//
//	manifest-deployer                                                        # in a cluster, with the rights of deployers/manifest/rbac.yaml
//	manifest-deployer --kubeconfig host.kubeconfig --landscaper-kubeconfig landscaper.kubeconfig
//	manifest-deployer --config config.yaml --default-strategy update         # as Landscaper's own manifest deployer
//	manifest-deployer --enable-self-targets --enable-oidc-targets            # with the rights for tokens, too
//
// --config names Landscaper's configuration file, v1alpha1 or v1alpha2, of
// which hpa has no effect. What Targets may ask for is as strict as it can be
// unless a flag --allow-… or --enable-… says otherwise; --help lists them all.
package main

import (
	"fmt"
	"os"

	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/spf13/pflag"

	"github.com/deployerkit/deployerkit/cmd/internal/deployer"
	"github.com/deployerkit/deployerkit/cmd/internal/manifestflags"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

func main() { os.Exit(deployer.Main(program())) }

// program is the manifest deployer with its flags.
func program() deployer.Program {
	var options manifest.Options
	return deployer.Program{
		Name: "manifest-deployer", Short: "Brings the manifests of deploy items to their targets",
		Flags: func(fs *pflag.FlagSet) { manifestflags.Add(fs, &options) },
		Args: func(configFile string) (deployerlib.DeployerArgs, error) {
			return args(configFile, options)
		},
	}
}

// args reads the configuration of the controller, which may be that of
// Landscaper's own manifest deployer.
func args(configFile string, options manifest.Options) (deployerlib.DeployerArgs, error) {
	none := deployerlib.DeployerArgs{}
	if err := options.Validate(); err != nil {
		return none, err
	}
	config, err := readConfig(configFile)
	if err != nil {
		return none, err
	}
	return manifest.Args(config, options), nil
}

// readConfig reads a file; nil without one.
func readConfig(path string) (*manifestv1alpha2.Configuration, error) {
	if path == "" {
		return nil, nil
	}
	body, err := os.ReadFile(path) //nolint:gosec // the operator says which file
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	config, err := manifest.DecodeConfiguration(body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return config, nil
}
