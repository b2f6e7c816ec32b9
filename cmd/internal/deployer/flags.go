// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// bodies is the level from which on client-go logs bodies of requests and answers.
const bodies = 8

// flags are what the command line says.
type flags struct {
	kubeconfig           string
	landscaperKubeconfig string
	config               string

	workers      int
	targetShare  float64
	given        func(flag string) bool
	itemSelector string
	namespace    string
	gracePeriod  time.Duration
	targetGrace  time.Duration

	election election

	metricsAddress string
	probeAddress   string

	zap zap.Options
}

// election are the flags of the leader election.
type election struct {
	enabled       bool
	namespace     string
	id            string
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
}

// newFlags has no defaults yet: addTo sets them.
func newFlags() *flags { return &flags{zap: zap.Options{DestWriter: &logWriter{to: os.Stderr}}} }

// addTo registers all flags, in a set of their own: packages that register on
// flag.CommandLine, as controller-runtime does, cannot clash.
func (f *flags) addTo(fs *pflag.FlagSet) {
	f.given = fs.Changed
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the host cluster (default: $KUBECONFIG, the cluster that this runs in, ~/.kube/config)")
	fs.StringVar(&f.landscaperKubeconfig, "landscaper-kubeconfig", "",
		"kubeconfig of the cluster with the deploy items (default: the host cluster)")
	fs.StringVar(&f.config, "config", "", "file with the deployer's configuration")
	fs.IntVar(&f.workers, "workers", deployerlib.DefaultWorkers, "number of deploy items that are worked on at the same time; outweighs the configuration file")
	fs.Float64Var(&f.targetShare, "target-share", deployerlib.DefaultTargetShare,
		"part of the workers that the deploy items of one target hold at most while those of others wait, greater than 0 and at most 1")
	fs.StringVar(&f.itemSelector, "item-selector", "",
		"label selector of the deploy items to care for, to shard them between deployments (default: all)")
	fs.StringVar(&f.namespace, "namespace", "",
		"namespace of the deploy items to care for; nothing is read in others, so rights in this one are enough (default: all)")
	fs.DurationVar(&f.gracePeriod, "grace-period", deployerlib.DefaultGracePeriod,
		"how long a running call may go on after SIGTERM, and after it was cancelled")
	fs.DurationVar(&f.targetGrace, "missing-target-grace", deployerlib.DefaultMissingTargetGrace,
		"how long the deletion of a deploy item waits for a Target that does not exist before it fails")
	fs.StringVar(&f.metricsAddress, "metrics-bind-address", "127.0.0.1:8080", `address of the metrics; "0" for none`)
	fs.StringVar(&f.probeAddress, "health-probe-bind-address", "127.0.0.1:8081", `address of /healthz and /readyz; "0" for none`)
	f.election.addTo(fs)
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	f.zap.BindFlags(logging)
	fs.AddGoFlagSet(logging)
}

// addTo registers the flags of the leader election.
func (e *election) addTo(fs *pflag.FlagSet) {
	fs.BoolVar(&e.enabled, "leader-elect", true, "elect a leader among the replicas; only the leader works")
	fs.StringVar(&e.namespace, "leader-election-namespace", "",
		`namespace of the lease in the host cluster (default: that of the pod; "default" outside a cluster)`)
	fs.StringVar(&e.id, "leader-election-id", "",
		"name of the lease (default: from the deployer's name, its configured identity, the item selector and the namespace)")
	fs.DurationVar(&e.leaseDuration, "leader-election-lease-duration", 15*time.Second,
		"how long a leader that is not heard of keeps its lease")
	fs.DurationVar(&e.renewDeadline, "leader-election-renew-deadline", 10*time.Second,
		"how long a leader tries to renew its lease before it gives up")
	fs.DurationVar(&e.retryPeriod, "leader-election-retry-period", 2*time.Second,
		"how often a replica tries to get or to renew the lease")
}

// args makes the deployer and puts on it what the flags say.
func (f *flags) args(p Program) (deployerlib.DeployerArgs, error) {
	none := deployerlib.DeployerArgs{}
	if err := f.validate(); err != nil {
		return none, err
	}
	args, err := p.Args(f.config)
	if err != nil {
		return none, err
	}
	if args.ItemSelector, err = labels.Parse(f.itemSelector); err != nil {
		return none, fmt.Errorf("--item-selector: %w", err)
	}
	args.GracePeriod, args.MissingTargetGrace = f.gracePeriod, f.targetGrace
	if args.TargetShare == 0 || f.given("target-share") {
		args.TargetShare = f.targetShare
	}
	if args.Options.MaxConcurrentReconciles == 0 || f.given("workers") {
		args.Options.MaxConcurrentReconciles = f.workers
	}
	f.election.setID(args, f.itemSelector, f.namespace)
	args.Default()
	return args, args.Validate()
}

// validate reports every flag that makes no sense.
func (f *flags) validate() error {
	var faults []error
	if f.workers < 1 {
		faults = append(faults, fmt.Errorf("--workers %d: must be positive", f.workers))
	}
	if f.targetShare <= 0 || f.targetShare > 1 {
		faults = append(faults, fmt.Errorf("--target-share %g: must be greater than 0 and at most 1", f.targetShare))
	}
	if f.namespace != "" {
		for _, fault := range validation.ValidateNamespaceName(f.namespace, false) {
			faults = append(faults, fmt.Errorf("--namespace %q: %s", f.namespace, fault))
		}
	}
	if f.gracePeriod <= 0 {
		faults = append(faults, fmt.Errorf("--grace-period %s: must be positive", f.gracePeriod))
	}
	if f.targetGrace <= 0 {
		faults = append(faults, fmt.Errorf("--missing-target-grace %s: must be positive", f.targetGrace))
	}
	if zap.New(zap.UseFlagOptions(&f.zap)).V(bodies).Enabled() {
		faults = append(faults, errors.New("--zap-log-level: must be 7 at most: from 8 on, client-go logs bodies of requests, and the Secrets in them"))
	}
	e := f.election
	if e.retryPeriod <= 0 || e.renewDeadline <= e.retryPeriod || e.leaseDuration <= e.renewDeadline {
		faults = append(faults, fmt.Errorf("--leader-election-…: want 0 < retry period < renew deadline < lease duration, have %s, %s and %s",
			e.retryPeriod, e.renewDeadline, e.leaseDuration))
	}
	return errors.Join(faults...)
}
