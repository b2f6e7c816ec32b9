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

// shutdownReserve is the time for the last writes after all calls have returned.
const shutdownReserve = 15 * time.Second

// Options configures the managers of a program. Only Host is required.
type Options struct {
	// Host is the configuration for the cluster in which the program runs and elects its leader.
	Host *rest.Config
	// Landscaper is the configuration for the cluster with the deploy items. The default is Host.
	Landscaper *rest.Config
	// Namespace restricts the program to the deploy items of one namespace. By default, it reconciles the deploy items of
	// all namespaces.
	Namespace string
	// MetricsBindAddress is the address of the metrics endpoint. "0" disables it. The default is 127.0.0.1:8080.
	MetricsBindAddress string
	// HealthProbeBindAddress is the address of /healthz and /readyz. "0" disables both endpoints. The default is
	// 127.0.0.1:8081.
	HealthProbeBindAddress string
	// HistoryBindAddress is the address at which the history of reconciles is served over TLS. A user who may get an item
	// may read the history of the item. "0" disables the endpoint. The default is 127.0.0.1:8082. See
	// [history.NewHandler].
	HistoryBindAddress string
	// HistoryCertDir is the directory with the certificate and the key for HistoryBindAddress (tls.crt and tls.key). By
	// default, a self-signed certificate is used.
	HistoryCertDir string
	// Election configures the leader election.
	Election Election
	// Logger is the logger of the managers. The default is the logger of controller-runtime.
	Logger logr.Logger
}

// Election configures the leader election.
type Election struct {
	// Disabled turns the election off, so that every replica reconciles.
	Disabled bool
	// Namespace is the namespace of the lease. The default is the namespace of the pod, or "default" outside of a
	// cluster.
	Namespace string
	// ID is the name of the lease. The default is derived from the deployer's name and identity, the item selector and
	// the namespace. With several shards, each shard has a lease of its own, whose name also contains the shard.
	ID string
	// LeaseDuration is how long a leader keeps a lease that it does not renew. The default is 15 s.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew its lease before it gives up the leadership. The default is 10 s.
	RenewDeadline time.Duration
	// RetryPeriod is how often a replica tries to acquire or renew the lease. The default is 2 s.
	RetryPeriod time.Duration

	baseID string // the name of the lease without shards
}

// setDefaults sets every field that has the zero value to its default, and args.LeaderElection.
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
	args.LeaderElection = !o.Election.Disabled
}

// NewManagers returns two managers for [deployerlib.Add]. The manager `ls` is for the Landscaper cluster and runs the
// controller. The manager `host` is for the host cluster. It is nil if the Landscaper cluster is the host cluster. The
// manager `ls` starts the manager `host`. The managers
//   - register the deployer for `deployerkit explain`, on the lease of the election, or on another lease without election;
//   - elect a leader, and release the lease when all calls of the deployer have returned. If leases are forbidden, the
//     managers log an error and work without an election. If the lease cannot be renewed, Start returns an error before
//     another process can become the leader, without waiting for running calls, and the program must end;
//   - do not cache Secrets, and cache deploy items of other types without configuration and status;
//   - serve probes and metrics on localhost by default. The process is ready when its cache contains all deploy items,
//     Targets and Contexts, and it may write deploy items, and leads or waits for the leader;
//   - store a history of reconciles and serve it, by default on localhost, unless args.History is set;
//   - log each warning of an API server once;
//   - send events to the core API group if events of the API group events.k8s.io are forbidden;
//   - wait for running calls when the process stops.
//
// NewManagers sets the defaults of args, sets args.LeaderElection if the managers elect a leader, and wraps
// args.CountCalls to count the deployer's calls. The caller still has to set the loggers of controller-runtime and klog,
// and to stop the managers on SIGTERM. [Run] does both.
//
// A manager with the defaults of controller-runtime elects no leader, serves metrics on all interfaces, caches every
// Secret that its client reads, waits at most 30 s for running calls, and logs a warning at each write.
func NewManagers(o Options, args *deployerlib.DeployerArgs) (ls, host manager.Manager, err error) {
	if err := o.validate(args); err != nil {
		return nil, nil, fmt.Errorf("create managers: %w", err)
	}
	args.Default()
	o.setDefaults(args)
	same := o.Landscaper == o.Host
	o.Landscaper, o.Host = prepare(o.Landscaper, o.Logger), prepare(o.Host, o.Logger)
	o.Landscaper.Wrap(calls.Transport(calls.Landscaper))
	reads := &readCheck{namespace: o.Namespace}
	options, err := o.newManagerOptions(args, reads)
	if err != nil {
		return nil, nil, err
	}
	var elected *lock
	if !o.Election.Disabled {
		if elected, err = newLock(o.Host, o.Election, o.newRegistration(args), o.Logger, wrapCountCalls(args)); err != nil {
			return nil, nil, fmt.Errorf("leader election: %w", err)
		}
		o.Election.applyTo(&options, elected)
	}
	if ls, err = manager.New(o.Landscaper, options); err != nil {
		return nil, nil, fmt.Errorf("create manager: %w", err)
	}
	reads.cache, reads.live = ls.GetCache(), ls.GetAPIReader()
	if o.Election.Disabled {
		if err := o.addAnnouncer(ls, args); err != nil {
			return nil, nil, err
		}
	} else {
		ls = &guardedManager{Manager: ls, lock: elected}
	}
	if err := addChecks(ls, reads, elected, o.Logger); err != nil {
		return nil, nil, err
	}
	if err := o.addHistory(ls, args); err != nil {
		return nil, nil, err
	}
	recorder := ls
	if !same {
		if host, err = newHostManager(o.Host, options, ls); err != nil {
			return nil, nil, err
		}
		recorder = host
	}
	elected.setEventRecorder(recorder)
	return ls, host, nil
}

// validate returns an error if a required field is missing, or if fields contradict each other.
func (o *Options) validate(args *deployerlib.DeployerArgs) error {
	if o.Host == nil {
		return errors.New("the field Host is required")
	}
	if args.Shard.Count > 1 && o.Election.Disabled {
		return errors.New("several shards require leader election")
	}
	return nil
}

// addAnnouncer adds a runnable that publishes the registration of a deployer without leader election.
func (o *Options) addAnnouncer(ls manager.Manager, args *deployerlib.DeployerArgs) error {
	a, err := newAnnouncer(o.Host, o.Election, o.newRegistration(args), o.Logger)
	if err != nil {
		return fmt.Errorf("registration: %w", err)
	}
	return ls.Add(a)
}

// addHistory sets args.History and adds a server for it to the manager.
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
	server := &history.Server{Address: o.HistoryBindAddress, Handler: history.NewHandler(args.History, deployer, reviewer), Log: o.Logger.WithName("history")}
	if o.HistoryCertDir != "" {
		server.CertFile, server.KeyFile = filepath.Join(o.HistoryCertDir, "tls.crt"), filepath.Join(o.HistoryCertDir, "tls.key")
	}
	return ls.Add(server)
}

// prepare returns a copy of cfg with a handler that logs each warning once, and with the transport of eventFallback.
func prepare(cfg *rest.Config, log logr.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.WarningHandlerWithContext = NewWarningLog(log)
	cfg.Wrap(eventFallback(log))
	return cfg
}

// wrapCountCalls wraps args.CountCalls, and returns a function that reports whether a call of the deployer is running.
func wrapCountCalls(args *deployerlib.DeployerArgs) func() bool {
	running, next := &atomic.Int64{}, args.CountCalls
	args.CountCalls = func(delta int) {
		running.Add(int64(delta))
		if next != nil {
			next(delta)
		}
	}
	return func() bool { return running.Load() > 0 }
}

// newManagerOptions returns the options of the manager that runs the controller.
func (o *Options) newManagerOptions(args *deployerlib.DeployerArgs, reads *readCheck) (manager.Options, error) {
	scheme, err := deployerlib.Scheme()
	if err != nil {
		return manager.Options{}, err
	}
	shutdown := 2*args.GracePeriod + shutdownReserve // one grace period before a call is cancelled, and one after its cancellation
	options := manager.Options{
		Scheme: scheme, Logger: o.Logger, MapperProvider: newMapper,
		Cache:                   cache.Options{ByObject: args.Shard.CacheByObject(args.Type), DefaultWatchErrorHandler: reads.failed},
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

// newHostManager returns a manager that only provides its cluster. It neither elects a leader nor serves endpoints. The
// manager `ls` starts and stops the returned manager like a cache.
func newHostManager(config *rest.Config, o manager.Options, ls manager.Manager) (manager.Manager, error) {
	host, err := manager.New(config, manager.Options{
		Scheme: o.Scheme, Logger: o.Logger.WithName("host"), Client: o.Client, Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", GracefulShutdownTimeout: o.GracefulShutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("create manager of the host cluster: %w", err)
	}
	return host, ls.Add(host)
}
