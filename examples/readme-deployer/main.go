// SPDX-License-Identifier: Apache-2.0

// Command readme-deployer creates a password for each of its deploy items and exports the password.
package main

import (
	"context"
	"crypto/rand"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployermain"
)

type passwords struct {
	deployerlib.Base // default implementations of ForceReconcile, Abort and ExtensionHooks
	client           client.Client
}

func (p *passwords) UseRuntime(rt deployerlib.Runtime) error {
	p.client = rt.Landscaper.GetClient()
	return nil
}

// config is the content of spec.config of an item.
type config struct {
	Length int `json:"length"`
}

func (p *passwords) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	cfg, err := deployerlib.DecodeConfig[config](di)
	if err != nil {
		return err // the error names the faulty field and ends the job
	}
	if cfg.Length < 1 || cfg.Length > 26 {
		return deployerlib.NewConfigError("spec.config.length", "must be 1 to 26, is %d", cfg.Length)
	}
	if di.Status.ExportReference != nil {
		return nil // the item already has its password
	}
	return deployerlib.WriteExport(ctx, p.client, di, map[string]string{"password": rand.Text()[:cfg.Length]})
}

func (p *passwords) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.ResolvedTarget) error {
	return deployerlib.DeleteExport(ctx, p.client, di)
}

var program = deployermain.Program{
	Short: "Makes a password for each of its deploy items",
	Args:  deployerlib.DeployerArgs{Name: "password-deployer", Type: "example.org/password", Deployer: &passwords{}},
}

func main() { deployermain.Run(program) }
