// SPDX-License-Identifier: Apache-2.0

package deployermain

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/history"
	"github.com/deployerkit/deployerkit/internal/calls"
)

// Defaults of [Options].
const (
	defaultMetricsBindAddress     = "127.0.0.1:8080"
	defaultHealthProbeBindAddress = "127.0.0.1:8081"
	defaultHistoryBindAddress     = "127.0.0.1:8082"
	defaultLeaseDuration          = 15 * time.Second
	defaultRenewDeadline          = 10 * time.Second
	defaultRetryPeriod            = 2 * time.Second
)

// shutdownReserve is for the last writes after all calls have ended.
const shutdownReserve = 15 * time.Second

// Options are the settings of a program's managers. Only Host is mandatory.
type Options struct {
	// Host is the access to the cluster that the program runs in and elects its leader in.
	Host *rest.Config
	// Landscaper is the access to the cluster with the deploy items. Default: Host.
	Landscaper *rest.Config
	// Namespace restricts the program to the deploy items of one namespace. Default: all.
	Namespace string
	// MetricsBindAddress is where metrics are served; "0" for none. Default: 127.0.0.1:8080.
	MetricsBindAddress string
	// HealthProbeBindAddress is where /healthz and /readyz are served; "0" for none.
	// Default: 127.0.0.1:8081.
	HealthProbeBindAddress string
	// HistoryBindAddress is where the last reconciles of each item are served over TLS, to those that may get the item;
	// "0" for none. Default: 127.0.0.1:8082. See [history.Handler].
	HistoryBindAddress string
	// HistoryCertDir holds the certificate of that address, tls.crt and tls.key. Default: one that is signed by itself.
	HistoryCertDir string
	// Election configures the leader election.
	Election Election
	// Logger is used by the managers. Default: the logger of controller-runtime.
	Logger logr.Logger
}

// Election configures the leader election.
type Election struct {
	// Disabled switches it off: every replica works.
	Disabled bool
	// Namespace is that of the lease. Default: the namespace of the pod, or "default" outside a cluster.
	Namespace string
	// ID is the name of the lease. Default: made of what tells one deployment of a deployer from another.
	ID string
	// LeaseDuration is how long a leader that is not heard of keeps its lease. Default: 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew its lease before it gives up. Default: 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is how often a replica tries to get or to renew the lease. Default: 2 s.
	RetryPeriod time.Duration
}

// setDefaults fills in every zero value that has a default.
func (o *Options) setDefaults(args *deployerlib.DeployerArgs) {
	if o.Landscaper == nil {
		o.Landscaper = o.Host
	}
	if o.Logger.IsZero() {
		o.Logger = ctrl.Log
	}
	o.MetricsBindAddress = cmp.Or(o.MetricsBindAddress, defaultMetricsBindAddress)
	o.HealthProbeBindAddress = cmp.Or(o.HealthProbeBindAddress, defaultHealthProbeBindAddress)
	o.HistoryBindAddress = cmp.Or(o.HistoryBindAddress, defaultHistoryBindAddress)
	o.Election.setDefaults(args, o.Namespace)
}

// NewManagers returns managers for [deployerlib.Add]: that of the Landscaper cluster, which runs the controller, and
// that of the host cluster, or nil if it is the same cluster. Starting the first starts both. They
//   - elect a leader, and release the lease when all calls of the deployer have returned. Where leases are forbidden,
//     they work without a leader after a warning;
//   - cache no Secrets, and deploy items of other types without their content;
//   - serve probes and metrics on the local host. The process is ready when it can read deploy items, Targets and Contexts;
//   - keep a history of reconciles and serve it on the local host, if args have none yet;
//   - log each warning of an API server once;
//   - send events to the older API where only that is allowed;
//   - wait for running calls when the process stops.
//
// NewManagers completes args and counts the deployer's calls with their CountCalls. The caller still has to set
// the logger of controller-runtime and klog, and to stop the managers on SIGTERM; [Run] does these too.
//
// A manager of another making lacks all of this: it elects no leader, serves metrics on all interfaces, caches every
// Secret that its client reads, ends running calls after 30 s, and logs a warning at each write.
func NewManagers(o Options, args *deployerlib.DeployerArgs) (ls, host manager.Manager, err error) {
	if o.Host == nil {
		return nil, nil, errors.New("new managers: Host is required")
	}
	args.Default()
	o.setDefaults(args)
	same := o.Landscaper == o.Host
	o.Landscaper, o.Host = prepare(o.Landscaper, o.Logger), prepare(o.Host, o.Logger)
	o.Landscaper.Wrap(calls.Transport(calls.Landscaper))
	reads := &readCheck{namespace: o.Namespace}
	options, err := o.manager(args, reads)
	if err != nil {
		return nil, nil, err
	}
	var elected *lock
	if !o.Election.Disabled {
		if elected, err = newLock(o.Host, o.Election, o.registration(args), o.Logger, countCalls(args)); err != nil {
			return nil, nil, fmt.Errorf("leader election: %w", err)
		}
		o.Election.applyTo(&options, elected)
	}
	if ls, err = manager.New(o.Landscaper, options); err != nil {
		return nil, nil, fmt.Errorf("make manager: %w", err)
	}
	reads.cache, reads.live = ls.GetCache(), ls.GetAPIReader()
	if err := addChecks(ls, reads, elected, o.Logger); err != nil {
		return nil, nil, err
	}
	if err := o.addHistory(ls, args); err != nil {
		return nil, nil, err
	}
	recorder := ls
	if !same {
		if host, err = hostManager(o.Host, options, ls); err != nil {
			return nil, nil, err
		}
		recorder = host
	}
	elected.recordWith(recorder)
	return ls, host, nil
}

// addHistory makes the deployer keep a history, and the manager serve it.
func (o *Options) addHistory(ls manager.Manager, args *deployerlib.DeployerArgs) error {
	if o.HistoryBindAddress == "0" || args.History != nil {
		return nil
	}
	reviewer, err := history.NewReviewer(o.Landscaper)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	args.History = history.NewStore(0)
	deployer := history.Deployer{Name: args.Name, Identity: args.Identity, Version: args.Version, Type: string(args.Type)}
	server := &history.Server{Address: o.HistoryBindAddress, Handler: history.Handler(args.History, deployer, reviewer), Log: o.Logger.WithName("history")}
	if o.HistoryCertDir != "" {
		server.CertFile, server.KeyFile = filepath.Join(o.HistoryCertDir, "tls.crt"), filepath.Join(o.HistoryCertDir, "tls.key")
	}
	return ls.Add(server)
}

// prepare returns a copy whose warnings are logged once and whose events survive a lack of rights.
func prepare(cfg *rest.Config, log logr.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandlerWithContext = NewWarningLog(log)
	cfg.Wrap(eventFallback(log))
	return cfg
}

// countCalls makes the arguments count the deployer's calls, and returns what reports whether one is running.
func countCalls(args *deployerlib.DeployerArgs) func() bool {
	running, next := &atomic.Int64{}, args.CountCalls
	args.CountCalls = func(delta int) {
		running.Add(int64(delta))
		if next != nil {
			next(delta)
		}
	}
	return func() bool { return running.Load() > 0 }
}

// manager returns the options of the manager that runs the controller.
func (o *Options) manager(args *deployerlib.DeployerArgs, reads *readCheck) (manager.Options, error) {
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return manager.Options{}, err
	}
	shutdown := 2*args.GracePeriod + shutdownReserve // a call may go on, and may then ignore that it was cancelled
	options := manager.Options{
		Scheme: scheme, Logger: o.Logger,
		Cache:                   cache.Options{ByObject: deployerlib.CacheByObject(args.Type), DefaultWatchErrorHandler: reads.failed},
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Metrics:                 metricsserver.Options{BindAddress: o.MetricsBindAddress},
		HealthProbeBindAddress:  o.HealthProbeBindAddress,
		GracefulShutdownTimeout: &shutdown,
	}
	if o.Namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options, nil
}

// hostManager makes a manager that only lends its cluster: it neither elects nor listens, and the other one starts and
// stops it like a cache.
func hostManager(config *rest.Config, o manager.Options, ls manager.Manager) (manager.Manager, error) {
	host, err := manager.New(config, manager.Options{
		Scheme: o.Scheme, Logger: o.Logger.WithName("host"), Client: o.Client, Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", GracefulShutdownTimeout: o.GracefulShutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager of the host cluster: %w", err)
	}
	return host, ls.Add(host)
}
