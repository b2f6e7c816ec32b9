// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
)

// shutdownReserve is for the last writes after all calls have ended.
const shutdownReserve = 15 * time.Second

// Scheme knows what a deployer handles: Landscaper's kinds and Kubernetes' own.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(clientgoscheme.AddToScheme(scheme), lsv1alpha1.AddToScheme(scheme))
	return scheme, err
}

// managers makes the manager of the Landscaper cluster, which runs the
// controller, and that of the host cluster; nil if it is the same cluster.
// Starting the first starts both.
func (f *flags) managers(log logr.Logger, args deployerlib.DeployerArgs) (ls, host manager.Manager, err error) {
	hostConfig, err := loadConfig(f.kubeconfig, log)
	if err != nil {
		return nil, nil, fmt.Errorf("host cluster: %w", err)
	}
	lsConfig := hostConfig
	if f.landscaperKubeconfig != "" {
		if lsConfig, err = loadConfig(f.landscaperKubeconfig, log); err != nil {
			return nil, nil, fmt.Errorf("landscaper cluster: %w", err)
		}
	}
	options, err := f.options(log, args)
	if err != nil {
		return nil, nil, err
	}
	options.LeaderElectionConfig = hostConfig
	if ls, err = manager.New(lsConfig, options); err != nil {
		return nil, nil, fmt.Errorf("make manager: %w", err)
	}
	if err := addChecks(ls); err != nil {
		return nil, nil, err
	}
	if lsConfig == hostConfig {
		return ls, nil, nil
	}
	host, err = hostManager(hostConfig, options, ls)
	return ls, host, err
}

// options are those of the manager that runs the controller.
func (f *flags) options(log logr.Logger, args deployerlib.DeployerArgs) (manager.Options, error) {
	scheme, err := Scheme()
	if err != nil {
		return manager.Options{}, err
	}
	shutdown := 2*f.gracePeriod + shutdownReserve // a call may go on, and may then ignore that it was cancelled
	options := manager.Options{
		Scheme: scheme, Logger: log,
		Cache:                   cache.Options{ByObject: deployerlib.CacheByObject(args.Type)},
		Metrics:                 metricsserver.Options{BindAddress: f.metricsAddress},
		HealthProbeBindAddress:  f.probeAddress,
		GracefulShutdownTimeout: &shutdown,
	}
	if f.namespace != "" {
		options.Cache.DefaultNamespaces = map[string]cache.Config{f.namespace: {}}
	}
	f.election.applyTo(&options)
	return options, nil
}

// hostManager only lends its cluster: it neither elects nor listens, and is
// started and stopped by the other one, like a cache.
func hostManager(config *rest.Config, o manager.Options, ls manager.Manager) (manager.Manager, error) {
	host, err := manager.New(config, manager.Options{
		Scheme: o.Scheme, Logger: o.Logger.WithName("host"), Metrics: metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: "0", GracefulShutdownTimeout: o.GracefulShutdownTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("make manager of the host cluster: %w", err)
	}
	return host, ls.Add(host)
}

// addChecks: alive while the process answers, ready once the cache is filled.
func addChecks(mgr manager.Manager) error {
	ready := func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("cache", ready))
}

// loadConfig reads a kubeconfig; without a path it looks where kubectl does,
// and in the pod. Clients are not throttled: the API server does that, and fairly.
func loadConfig(path string, log logr.Logger) (*rest.Config, error) {
	load := config.GetConfig
	if path != "" {
		load = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	}
	restConfig, err := load()
	if err != nil {
		return nil, fmt.Errorf("load kubeconfig: %w", err)
	}
	restConfig.QPS, restConfig.Burst = -1, 0
	restConfig.WarningHandlerWithContext = NewWarningLog(log)
	return restConfig, nil
}
