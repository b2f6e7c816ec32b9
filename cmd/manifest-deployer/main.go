// SPDX-License-Identifier: Apache-2.0

// Command manifest-deployer runs the manifest deployer of package deployers/manifest.
//
//	manifest-deployer                                                        # in a cluster, with the rights of deployers/manifest/rbac.yaml
//	manifest-deployer --kubeconfig host.kubeconfig --landscaper-kubeconfig landscaper.kubeconfig
//	manifest-deployer --config config.yaml --default-strategy update         # as Landscaper's own manifest deployer
//	manifest-deployer --enable-self-targets --enable-oidc-targets            # with the rights for tokens, too
//	manifest-deployer plan web -n shop                                       # what a reconcile of the item would change
//
// The flag --config is the path of a configuration file of Landscaper's manifest deployer, with apiVersion v1alpha1 or
// v1alpha2. If a field of this file has no effect, the program logs this. By default, Targets are restricted as much as
// possible. The flags --allow-… and --enable-… remove restrictions. --help lists all flags.
package main

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	manifestv1alpha1 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha1"
	manifestv1alpha2 "github.com/gardener/landscaper/apis/deployer/manifest/v1alpha2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/cmd/internal/manifestflags"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/manifest"
)

func main() { deployermain.Run(newProgram()) }

// configuration is the configuration file of Landscaper's manifest deployer.
type configuration struct {
	deployermain.Configuration `json:",inline"`

	Export struct {
		// DefaultTimeout is how long a run waits for the value of an export, unless the export sets its own timeout.
		DefaultTimeout *lsv1alpha1.Duration `json:"defaultTimeout,omitempty"`
	} `json:"export"`
}

// newProgram returns the manifest deployer with its flags.
func newProgram() deployermain.Program {
	var options manifest.Options
	config := &configuration{}
	return deployermain.Program{
		Name: "manifest-deployer", Short: "Applies the manifests of deploy items to their targets",
		Flags:  func(fs *pflag.FlagSet) { manifestflags.Add(fs, &options) },
		Config: config,
		ConfigKinds: []schema.GroupVersionKind{
			manifestv1alpha2.SchemeGroupVersion.WithKind("Configuration"), manifestv1alpha1.SchemeGroupVersion.WithKind("Configuration"),
		},
		NewArgs: func() (deployerlib.DeployerArgs, error) {
			if timeout := config.Export.DefaultTimeout; timeout != nil {
				options.ExportTimeout = timeout.Duration
			}
			return manifest.Args(nil, options), options.Validate()
		},
		Commands: []*cobra.Command{plan.Command()},
	}
}
