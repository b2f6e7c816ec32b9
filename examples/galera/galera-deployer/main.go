// SPDX-License-Identifier: Apache-2.0

// Command galera-deployer runs Galera clusters for its deploy items: see package galera.
package main

import (
	"context"
	"errors"
	"flag"
	"os"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/examples/galera"
	"github.com/deployerkit/deployerkit/stategraph"
	"github.com/deployerkit/deployerkit/targets"
)

var metrics = flag.String("metrics-bind-address", "127.0.0.1:8080", "where metrics are served; 0: nowhere")

func run(ctx context.Context, cfg *rest.Config) error {
	graph, err := galera.Graph()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), lsv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: *metrics}})
	if err != nil {
		return err
	}
	options := stategraph.Options{Targets: targets.Policy{AllowPrivateHosts: true}} // a cluster on this machine will do
	if err := deployerlib.Add(ctrl.Log, mgr, nil, stategraph.Args("galera-deployer", "example.org/galera", graph, options)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie()); err != nil {
		ctrl.Log.Error(err, "the deployer ended")
		os.Exit(1)
	}
}
