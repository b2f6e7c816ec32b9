// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/upkeep"
)

// New returns the manifest deployer, with further hooks in addition to its own. Its own hooks correct drift at once and
// reconcile items on the schedule of their configuration.
func New(opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	d := &deployer{
		options: opts,
		keeper: upkeep.New(upkeep.Options{
			Name: "manifest", Targets: opts.Targets, TargetLimits: opts.TargetLimits, WrapTransport: opts.WrapTransport, Fights: opts.Fights,
			CleanUpFirst: opts.CleanUpFirst,
		}),
	}
	d.hooks = d.keeper.Hooks(continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(Schedule)))
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// deployer applies the manifests of deploy items to their targets.
type deployer struct {
	deployerlib.Base

	options Options
	hooks   extension.ReconcileExtensionHooks
	keeper  *upkeep.Keeper
}

var (
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime checks the options and connects the keeper.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("manifest deployer: %w", err)
	}
	return d.keeper.UseRuntime(rt)
}

// Reconcile applies the item's manifests to its target.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.newRun(ctx, di, target)
	if err != nil {
		return err
	}
	return r.reconcile(ctx)
}

// ForceReconcile does the same as Reconcile, but does not assume that anything is unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.keeper.Thorough(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Resume watches the objects of a finished item in its target, so that drift from before the start of the process is
// noticed.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return nil
	}
	r, err := d.openRun(ctx, di)
	if err != nil {
		return err
	}
	return r.up.Resume(ctx, target)
}
