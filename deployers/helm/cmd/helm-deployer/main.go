// SPDX-License-Identifier: Apache-2.0

// Command helm-deployer runs the Helm deployer of package deployers/helm.
//
//	helm-deployer                                                        # in a cluster, with the rights of deployers/helm/rbac.yaml
//	helm-deployer --kubeconfig host.kubeconfig --landscaper-kubeconfig landscaper.kubeconfig
//	helm-deployer --config config.yaml --default-strategy update         # as Landscaper's own Helm deployer
//	helm-deployer --chart-host harbor.corp.example:ca=/etc/corp/ca.pem,private   # a registry in a private network
//	helm-deployer plan web -n shop                                       # what a reconcile of the item would change
//
// The flag --config is the path of a configuration file of Landscaper's Helm deployer. If a field of this file has no
// effect, the program logs this. By default, Targets and the hosts of charts are restricted as much as possible. The
// flags --allow-…, --enable-… and --chart-… remove restrictions. --help lists all flags.
package main

import (
	"io"
	"log"
	"log/slog"

	"github.com/gardener/landscaper/apis/config"
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/cmd/deployerkit/plan"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
	"github.com/deployerkit/deployerkit/deployers/helm"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
)

func main() {
	discardHelmLogs()
	deployermain.Run(newProgram())
}

// discardHelmLogs discards the output of the loggers that Helm uses. Their messages contain values of charts. The
// deployer itself uses another logger.
func discardHelmLogs() {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard) // after SetDefault, which redirects this logger
}

// configuration is the configuration file of Landscaper's Helm deployer.
type configuration struct {
	deployermain.Configuration `json:",inline"`

	// OCI configures the access to charts.
	OCI *config.OCIConfiguration `json:"oci,omitempty"`

	Export struct {
		// DefaultTimeout is how long a run waits for the value of an export, unless the export sets its own timeout.
		DefaultTimeout *lsv1alpha1.Duration `json:"defaultTimeout,omitempty"`
	} `json:"export"`
}

// program contains the settings from the flags and from the configuration file.
type program struct {
	flags  flags
	config configuration
}

// newProgram returns the Helm deployer with its flags and the command plan.
func newProgram() deployermain.Program {
	p := &program{}
	return plan.WithSettings(deployermain.Program{
		Name: "helm-deployer", Short: "Deploys the Helm charts of deploy items to their targets",
		Flags:       p.flags.addTo,
		Config:      &p.config,
		ConfigKinds: []schema.GroupVersionKind{helmv1alpha1.SchemeGroupVersion.WithKind("Configuration")},
		NewArgs:     p.newArgs,
	}, p.newPlan)
}

// newArgs returns the arguments of the deployer.
func (p *program) newArgs() (deployerlib.DeployerArgs, error) {
	options, err := p.newOptions()
	if err != nil {
		return deployerlib.DeployerArgs{}, err
	}
	if oci := p.config.OCI; oci != nil && oci.Cache != nil {
		ctrl.Log.Info("these fields of the configuration file have no effect on this deployer", "fields", []string{"oci.cache"})
	}
	return helm.Args(nil, options), nil
}

// newOptions returns the validated options of the deployer.
func (p *program) newOptions() (helm.Options, error) {
	options := p.flags.options
	options.RenderLimits.Output = int(p.flags.output)
	if timeout := p.config.Export.DefaultTimeout; timeout != nil {
		options.ExportTimeout = timeout.Duration
	}
	sources, err := p.flags.newChartOptions(p.config.OCI)
	if err != nil {
		return options, err
	}
	options.Metrics = helm.NewMetrics()
	sources.Limits, sources.Observe = options.ChartLimits, options.Metrics.ObserveChart
	if options.Sources, err = chart.New(sources); err != nil {
		return options, err
	}
	return options, options.Validate()
}
