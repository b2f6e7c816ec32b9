// SPDX-License-Identifier: Apache-2.0

package soak_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/declarative"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/manifest"
	"github.com/deployerkit/deployerkit/deployers/mock"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

// These are the environment variables of a replica. If the first variable is set, the test binary runs as a replica.
const (
	kubeconfigEnv = "SOAK_REPLICA_KUBECONFIG"
	namespaceEnv  = "SOAK_REPLICA_NAMESPACE"
)

const (
	leaseName = "soak"
	grace     = 5 * time.Second
	// elected is the line that a replica writes to its standard output when it has acquired the lease.
	elected = "elected\n"
	// cannotStart is a text in the output of a replica that could not connect to the API server when it started.
	cannotStart = "create manager"
	// childrenType is the type of the items of the declarative deployer.
	childrenType lsv1alpha1.DeployItemType = "soak.deployerkit.dev/children"
	// graphType is the type of the items of the state-graph deployer.
	graphType lsv1alpha1.DeployItemType = "soak.deployerkit.dev/graph"
)

// The times for leader election are short, so that a takeover takes three to four seconds.
var lease, renew, retry = 3 * time.Second, 2 * time.Second, 500 * time.Millisecond

// A replica that is killed waits for its controllers without a deadline. With a deadline, controller-runtime reads the
// time without a lock, while the loss of the lease changes it.
const shutdown = time.Duration(-1)

// newDeployerArgs returns the arguments of the deployers that every replica runs. The function `wrap` wraps the
// transport of each client for a target.
func newDeployerArgs(wrap func(http.RoundTripper) http.RoundTripper) []deployerlib.DeployerArgs {
	policy := targets.Policy{AllowPrivateHosts: true}
	all := []deployerlib.DeployerArgs{
		mock.Args(nil),
		manifest.Args(nil, manifest.Options{Targets: policy, WrapTransport: wrap}),
		declarative.Args("children.soak.deployerkit.dev", childrenType, declarative.HandlerFunc(handle), declarative.Options{
			Children:    []declarative.ChildKind{{APIVersion: "v1", Kind: "ConfigMap"}},
			MinInterval: 100 * time.Millisecond, Targets: policy, WrapTransport: wrap,
		}),
		stategraph.Args("graph.soak.deployerkit.dev", graphType, newGraph(), stategraph.Options{
			StartWithin: time.Second, Targets: policy, WrapTransport: wrap,
		}),
	}
	for i := range all {
		all[i].Registerer = prometheus.NewRegistry()
		all[i].PollInterval, all[i].GracePeriod = 500*time.Millisecond, grace
		all[i].Backoff = deployerlib.Backoff{Min: 200 * time.Millisecond, Max: 3 * time.Second}
	}
	return all
}

// childrenConfig is the Go type of spec.config for items of the declarative deployer and of the state-graph deployer.
type childrenConfig struct {
	// Maps contains the values of the ConfigMaps. The keys are the ends of the names of the ConfigMaps.
	Maps map[string]string `json:"maps"`
}

// handle is a handler that returns a ConfigMap for each entry of the configuration.
func handle(_ context.Context, req *declarative.SyncRequest) (*declarative.SyncResponse, error) {
	config, err := declarative.Config[childrenConfig](req)
	if err != nil {
		return nil, err
	}
	response := declarative.NewBuilder(map[string]any{"children": len(req.Children)})
	for name, value := range config.Maps {
		response.Add(map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": req.Name(name)}, "data": map[string]any{dataKey: value},
		})
	}
	return response.Build()
}

// newReplica creates the manager of a replica.
func newReplica(cfg *rest.Config, namespace string, lock resourcelock.Interface, wrap func(http.RoundTripper) http.RoundTripper, log logr.Logger) (ctrl.Manager, error) {
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return nil, err
	}
	all := newDeployerArgs(wrap)
	types := []lsv1alpha1.DeployItemType{}
	for i := range all {
		types = append(types, all[i].Type)
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Logger: log, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{
			ByObject: deployerlib.CacheByObject(types...), DefaultNamespaces: map[string]cache.Config{namespace: {}},
		},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry, GracefulShutdownTimeout: new(shutdown),
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cannotStart, err)
	}
	for args := range slices.Values(all) {
		args.LeaderElection = true
		if err := deployerlib.Add(log, mgr, nil, args); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// newLog returns a logger that writes lines to w.
func newLog(w io.Writer) logr.Logger {
	if w == io.Discard {
		return logr.Discard()
	}
	return funcr.New(func(prefix, args string) { _, _ = fmt.Fprintln(w, prefix, args) },
		funcr.Options{LogTimestamp: true, TimestampFormat: "15:04:05.000"})
}

// mainReplica is the main function of a replica: it reports when it has acquired the lease, processes items, and ends
// when it receives a signal.
func mainReplica(kubeconfig string) int {
	ctrl.SetLogger(newLog(os.Stderr))
	if err := runReplica(ctrl.SetupSignalHandler(), kubeconfig); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "replica:", err)
		return 1
	}
	return 0
}

func runReplica(ctx context.Context, kubeconfig string) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cfg.QPS = -1
	lock, err := newLock(cfg, os.Getenv(namespaceEnv))
	if err != nil {
		return err
	}
	mgr, err := newReplica(cfg, os.Getenv(namespaceEnv), lock, nil, newLog(os.Stderr))
	if err != nil {
		return err
	}
	go func() {
		<-mgr.Elected()
		_, _ = os.Stdout.WriteString(elected)
	}()
	return mgr.Start(ctx)
}
