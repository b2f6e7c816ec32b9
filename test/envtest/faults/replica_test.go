// SPDX-License-Identifier: Apache-2.0

package faults_test

import (
	"context"
	"fmt"
	"os"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// These are the environment variables of a replica. If the first variable is set, the test binary runs as a replica.
const (
	replicaEnv          = "FAULTS_REPLICA_KUBECONFIG"
	replicaTypeEnv      = "FAULTS_REPLICA_TYPE"
	replicaNamespaceEnv = "FAULTS_REPLICA_NAMESPACE"
)

// replicaGrace is the grace period of a replica.
const replicaGrace = 10 * time.Second

// work is the type of the configuration of the replica's items.
type work struct {
	// Takes is the duration of a call.
	Takes string `json:"takes"`
}

// slowDeployer is a deployer whose calls last as long as the configuration of the item specifies.
type slowDeployer struct{ deployerlib.Base }

func (slowDeployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	todo, err := deployerlib.DecodeConfig[work](di)
	if err != nil {
		return err
	}
	takes, err := time.ParseDuration(todo.Takes)
	if err != nil {
		return err
	}
	timer := time.NewTimer(takes)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (slowDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// mainReplica is the main function of a replica: it acquires the lease, processes items, and ends when it receives a
// signal.
func mainReplica(kubeconfig string) int {
	ctrl.SetLogger(logr.Discard())
	if err := runReplica(ctrl.SetupSignalHandler(), kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, "replica:", err)
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
	scheme, err := landscapertest.Scheme()
	if err != nil {
		return err
	}
	lease, renew, retry, shutdown := 4*time.Second, 3*time.Second, time.Second, 2*replicaGrace
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: os.Getenv(replicaNamespaceEnv),
		LeaseDuration: &lease, RenewDeadline: &renew, RetryPeriod: &retry, GracefulShutdownTimeout: &shutdown,
	})
	if err != nil {
		return err
	}
	args := deployerlib.DeployerArgs{
		Type: lsv1alpha1.DeployItemType(os.Getenv(replicaTypeEnv)), Deployer: slowDeployer{}, GracePeriod: replicaGrace, LeaderElection: true,
	}
	args.Options.MaxConcurrentReconciles = 5
	if err := deployerlib.Add(logr.Discard(), mgr, nil, args); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
