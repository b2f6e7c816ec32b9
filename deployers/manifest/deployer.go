// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/upkeep"
	"github.com/deployerkit/deployerkit/upkeep/resources"
)

// New returns the manifest deployer. Its own hooks correct drift immediately and reconcile items on the schedule of
// their configuration. The given hooks are called in addition.
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

// ConditionDriftDetection is the type of a condition of items for which drift is not detected immediately. The message
// explains why. Other items do not have this condition.
const ConditionDriftDetection = upkeep.ConditionDriftDetection

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

// UseRuntime validates the options and passes the runtime to the Keeper of the deployer.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("manifest deployer: %w", err)
	}
	return d.keeper.UseRuntime(rt)
}

// startRun returns a Run for the current call.
func (d *deployer) startRun(ctx context.Context, di *lsv1alpha1.DeployItem) (*resources.Run, error) {
	r, err := resources.Begin(ctx, d.keeper, statusFormat, di)
	if err != nil {
		return nil, err
	}
	r.Engine = apply.Options{
		Strategy: apply.Strategy(StrategyApply), Recreate: d.options.Recreate, SharedKinds: d.options.SharedKinds, Adoption: d.options.Adoption,
	}
	return r, nil
}

// setConfig sets the configuration of a run.
func setConfig(r *resources.Run, config *Config) {
	r.Config, r.Engine.Strategy = &config.Config, apply.Strategy(config.Strategy)
}

// IgnoresContext implements deployerlib.ContextIgnorer.
func (d *deployer) IgnoresContext() {}

// Reconcile applies the item's manifests to its target.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.startRun(ctx, di)
	if err != nil {
		return err
	}
	config, err := Decode(di, d.options)
	if err != nil {
		return err
	}
	desired, err := config.Desired()
	if err != nil {
		return err
	}
	setConfig(r, config)
	if err := r.Up.Connect(ctx, target); err != nil {
		return err
	}
	return r.Deploy(ctx, desired, nil)
}

// ForceReconcile is like Reconcile, but also writes objects that seem to be unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.keeper.Thorough(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete deletes the objects of the item. If the configuration is invalid, it deletes them in the built-in order.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.startRun(ctx, di)
	if err != nil {
		return err
	}
	config, err := Decode(di, d.options)
	if err != nil {
		r.Up.Event(nil, corev1.EventTypeWarning, "InvalidConfiguration", "the objects are deleted in the default order, because the configuration is invalid: "+contract.OneLine(err.Error(), maxText))
		return r.Delete(ctx, target, nil)
	}
	setConfig(r, config)
	if len(config.Manifests) == 0 {
		return r.Delete(ctx, target, nil)
	}
	return r.Delete(ctx, target, config.Desired)
}

// maxText limits the length of the error text in an event, in bytes.
const maxText = 1024

// Resume watches the objects of a finished item. The deployer thereby also detects drift that occurred before the
// process was started.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return nil
	}
	r, err := d.startRun(ctx, di)
	if err != nil {
		return err
	}
	return r.Up.Resume(ctx, target)
}
