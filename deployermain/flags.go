// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap/zapcore"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// flags contains the values of the common flags.
type flags struct {
	kubeconfig           string
	landscaperKubeconfig string
	config               string

	workers      int
	targetShare  float64
	given        func(flag string) bool
	itemSelector string
	gracePeriod  time.Duration
	targetGrace  time.Duration
	elect        bool
	shards       int
	shard        int

	options Options
	logs    logFlags
	tracer  trace.TracerProvider // configured by the OpenTelemetry variables; nil if these contain no endpoint
}

// newFlags returns flags without values. The method `addTo` sets the defaults.
func newFlags() *flags { return &flags{} }

// addTo registers all flags in fs. The flag set is not flag.CommandLine, so there is no conflict with packages that
// register their flags there, such as controller-runtime.
func (f *flags) addTo(fs *pflag.FlagSet) {
	f.given = fs.Changed
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"kubeconfig of the host cluster (default: $KUBECONFIG, the cluster of the pod, ~/.kube/config)")
	fs.StringVar(&f.landscaperKubeconfig, "landscaper-kubeconfig", "",
		"kubeconfig of the cluster with the deploy items (default: the host cluster)")
	fs.StringVar(&f.config, "config", "", "file with the deployer's configuration")
	fs.IntVar(&f.workers, "workers", deployerlib.DefaultWorkers, "number of deploy items that are reconciled at the same time; takes precedence over the configuration file")
	fs.Float64Var(&f.targetShare, "target-share", deployerlib.DefaultTargetShare,
		"largest share of the workers that the deploy items of one target may occupy while deploy items of other targets wait; greater than 0 and at most 1")
	fs.StringVar(&f.itemSelector, "item-selector", "",
		"label selector of the deploy items to reconcile, to shard them between deployments (default: all)")
	fs.IntVar(&f.shards, "shards", 1, fmt.Sprintf("number of shards, at most %d; each namespace belongs to one shard, and the replicas of a shard process only its deploy items", deployerlib.MaxShards))
	fs.IntVar(&f.shard, "shard", shardOfPod, "shard of this replica, from 0 to --shards minus 1; -1 means the ordinal in the name of the pod ($MY_POD_NAME or the host name), modulo --shards")
	fs.StringVar(&f.options.Namespace, "namespace", "",
		"namespace of the deploy items to reconcile; nothing is read in other namespaces, so rights in this namespace are sufficient (default: all)")
	fs.DurationVar(&f.gracePeriod, "grace-period", deployerlib.DefaultGracePeriod,
		"time that running calls have to finish after SIGTERM; after this time, they are cancelled and have the same time again to return")
	fs.DurationVar(&f.targetGrace, "missing-target-grace", deployerlib.DefaultMissingTargetGrace,
		"how long the deletion of a deploy item waits for a missing Target before the deletion fails")
	fs.StringVar(&f.options.MetricsBindAddress, "metrics-bind-address", defaultMetricsBindAddress, `bind address of the metrics endpoint; "0" disables it`)
	fs.StringVar(&f.options.HealthProbeBindAddress, "health-probe-bind-address", defaultHealthProbeBindAddress,
		`bind address of /healthz and /readyz; "0" disables them`)
	fs.StringVar(&f.options.HistoryBindAddress, "history-bind-address", defaultHistoryBindAddress,
		`bind address of the history of reconciles, which is served over TLS to users who may get the deploy item; "0" disables it`)
	fs.StringVar(&f.options.HistoryCertDir, "history-cert-dir", "", "directory with tls.crt and tls.key for the history of reconciles (default: a self-signed certificate)")
	f.addElection(fs)
	f.logs.addTo(fs)
}

// addElection registers the flags of the leader election.
func (f *flags) addElection(fs *pflag.FlagSet) {
	e := &f.options.Election
	fs.BoolVar(&f.elect, "leader-elect", true, "elect a leader among the replicas; only the leader reconciles")
	fs.StringVar(&e.Namespace, "leader-election-namespace", "",
		`namespace of the lease in the host cluster (default: the namespace of the pod, from its token or $MY_POD_NAMESPACE; "default" outside a cluster)`)
	fs.StringVar(&e.ID, "leader-election-id", "",
		"name of the lease (default: derived from the deployer's name, its configured identity, the item selector and the namespace)")
	fs.DurationVar(&e.LeaseDuration, "leader-election-lease-duration", defaultLeaseDuration,
		"time after which another replica may take over a lease that was not renewed")
	fs.DurationVar(&e.RenewDeadline, "leader-election-renew-deadline", defaultRenewDeadline,
		"how long a leader tries to renew its lease before it gives up leadership")
	fs.DurationVar(&e.RetryPeriod, "leader-election-retry-period", defaultRetryPeriod,
		"how often a replica tries to acquire or renew the lease")
}

// applyTo copies the values of the flags to the arguments of the deployer.
func (f *flags) applyTo(args *deployerlib.DeployerArgs) error {
	f.options.Election.Disabled = !f.elect
	if f.itemSelector != "" {
		selector, err := labels.Parse(f.itemSelector)
		if err != nil {
			return fmt.Errorf("--item-selector: %w", err)
		}
		args.ItemSelector = selector
	}
	if args.GracePeriod == 0 || f.given("grace-period") {
		args.GracePeriod = f.gracePeriod
	}
	if args.MissingTargetGrace == 0 || f.given("missing-target-grace") {
		args.MissingTargetGrace = f.targetGrace
	}
	if args.TargetShare == 0 || f.given("target-share") {
		args.TargetShare = f.targetShare
	}
	if args.Options.MaxConcurrentReconciles == 0 || f.given("workers") {
		args.Options.MaxConcurrentReconciles = f.workers
	}
	return f.setShard(args)
}

// setShard sets the shard of the deployer, unless the program has set it and the flag --shards is not used.
func (f *flags) setShard(args *deployerlib.DeployerArgs) error {
	if args.Shard.Count != 0 && !f.given("shards") {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	args.Shard, err = f.getShard(os.Getenv(podNameVariable), host)
	return err
}

// validate returns an error that lists every invalid flag.
func (f *flags) validate() error {
	var faults []error
	if f.workers < 1 {
		faults = append(faults, fmt.Errorf("--workers %d: must be positive", f.workers))
	}
	if f.targetShare <= 0 || f.targetShare > 1 {
		faults = append(faults, fmt.Errorf("--target-share %g: must be greater than 0 and at most 1", f.targetShare))
	}
	if namespace := f.options.Namespace; namespace != "" {
		for _, fault := range validation.ValidateNamespaceName(namespace, false) {
			faults = append(faults, fmt.Errorf("--namespace %q: %s", namespace, fault))
		}
	}
	if f.gracePeriod <= 0 {
		faults = append(faults, fmt.Errorf("--grace-period %s: must be positive", f.gracePeriod))
	}
	if f.targetGrace <= 0 {
		faults = append(faults, fmt.Errorf("--missing-target-grace %s: must be positive", f.targetGrace))
	}
	if level := f.logs.zap.Level; level != nil && level.Enabled(zapcore.Level(-bodyLevel)) {
		faults = append(faults, errors.New("--zap-log-level: must be at most 7, because client-go logs the bodies of requests, including Secrets, at level 8 and above"))
	}
	e := f.options.Election
	if e.RetryPeriod <= 0 || e.RenewDeadline <= e.RetryPeriod || e.LeaseDuration <= e.RenewDeadline {
		faults = append(faults, fmt.Errorf("--leader-election-…: want 0 < retry period < renew deadline < lease duration, have %s, %s and %s",
			e.RetryPeriod, e.RenewDeadline, e.LeaseDuration))
	}
	return errors.Join(faults...)
}
