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
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// New returns the manifest deployer. Its own hooks correct drift immediately and reconcile items on the schedule of
// their configuration. The given hooks are called in addition.
func New(opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	d := &deployer{
		options: opts,
		manager: managed.New(managed.Options{
			Name: "manifest", Targets: opts.Targets, TargetLimits: opts.TargetLimits, WrapTransport: opts.WrapTransport, Fights: opts.Fights,
			CleanUpFirst: opts.CleanUpFirst,
		}),
	}
	d.hooks = d.manager.NewHooks(continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(getSchedule)))
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// ConditionDriftDetection is the type of a condition of items for which drift is not detected immediately. The message
// explains why. Other items do not have this condition.
const ConditionDriftDetection = managed.ConditionDriftDetection

// deployer applies the manifests of deploy items to their targets.
type deployer struct {
	deployerlib.Base

	options Options
	hooks   extension.ReconcileExtensionHooks
	manager *managed.ResourceManager
}

var (
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime validates the options and passes the runtime to the ResourceManager of the deployer.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("manifest deployer: %w", err)
	}
	return d.manager.UseRuntime(rt)
}

// startRun returns a Run for the current call.
func (d *deployer) startRun(ctx context.Context, di *lsv1alpha1.DeployItem) (*resources.Run, error) {
	r, err := resources.Begin(ctx, d.manager, statusFormat, di)
	if err != nil {
		return nil, err
	}
	r.EngineOptions = apply.Options{
		Strategy: apply.Strategy(StrategyApply), Recreate: d.options.Recreate, SharedKinds: d.options.SharedKinds, Adoption: d.options.Adoption,
	}
	return r, nil
}

// setConfig sets the configuration of a run.
func setConfig(r *resources.Run, config *Config) {
	r.Config, r.EngineOptions.Strategy = &config.Config, apply.Strategy(config.Strategy)
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
	desired, err := config.ToDesired()
	if err != nil {
		return err
	}
	setConfig(r, config)
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	return r.Deploy(ctx, desired, nil)
}

// ForceReconcile is like Reconcile, but also writes objects that seem to be unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.manager.ForceResync(di)
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
		r.Managed.RecordEvent(nil, corev1.EventTypeWarning, "InvalidConfiguration", "the objects are deleted in the default order, because the configuration is invalid: "+contract.OneLine(err.Error(), maxText))
		return r.Delete(ctx, target, nil)
	}
	setConfig(r, config)
	if len(config.Manifests) == 0 {
		return r.Delete(ctx, target, nil)
	}
	return r.Delete(ctx, target, config.ToDesired)
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
	return r.Managed.StartWatches(ctx, target)
}
