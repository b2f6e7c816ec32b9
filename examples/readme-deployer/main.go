// SPDX-License-Identifier: Apache-2.0

// Command readme-deployer makes a password for each of its deploy items and exports it.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"os"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/deployerkit/deployerkit/deployerlib"
)

type passwords struct {
	deployerlib.Base // ForceReconcile, Abort and ExtensionHooks as most deployers want them
	client           client.Client
}

// config is what spec.config of an item holds.
type config struct {
	Length int `json:"length"`
}

func (p *passwords) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	cfg, err := deployerlib.DecodeConfig[config](di)
	if err != nil {
		return err // names the faulty field and ends the job
	}
	if cfg.Length < 1 || cfg.Length > 26 {
		return deployerlib.ConfigError("spec.config.length", "must be 1 to 26, is %d", cfg.Length)
	}
	if di.Status.ExportReference != nil {
		return nil // has its password already
	}
	return deployerlib.WriteExport(ctx, p.client, di, map[string]string{"password": rand.Text()[:cfg.Length]})
}

func (p *passwords) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	return deployerlib.DeleteExport(ctx, p.client, di)
}

func run(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), lsv1alpha1.AddToScheme(scheme))
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	uncached, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	args := deployerlib.DeployerArgs{Name: "password-deployer", Type: "example.org/password", Deployer: &passwords{client: uncached}}
	if err := deployerlib.Add(ctrl.Log, mgr, nil, args); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie()); err != nil {
		ctrl.Log.Error(err, "the deployer ended")
		os.Exit(1)
	}
}
