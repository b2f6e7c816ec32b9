// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"fmt"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	helmv1alpha1 "github.com/gardener/landscaper/apis/deployer/helm/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployers/helm/chart"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/managed/resources"
)

// New returns the Helm deployer. Its own hooks correct drift immediately and reconcile items on the schedule of their
// configuration. The given hooks are called in addition.
func New(opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	if opts.Sources.Inline == nil {
		opts.Sources.Inline = chart.Inline()
	}
	if opts.Metrics == nil {
		opts.Metrics = NewMetrics()
	}
	d := &deployer{
		options:  opts,
		renderer: release.NewRenderer(opts.RenderLimits),
		manager: managed.New(managed.Options{
			Name: "helm", Targets: opts.Targets, TargetLimits: opts.TargetLimits, WrapTransport: opts.WrapTransport, Fights: opts.Fights,
			CleanUpFirst: opts.CleanUpFirst,
		}),
	}
	d.slots = newSlots(opts.Operations, func(uid types.UID) { d.manager.Trigger(uid, time.Time{}) })
	d.hooks = d.manager.NewHooks(continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(Schedule)))
	d.hooks = d.hooks.RegisterHookSetup(d.endAbandoned())
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// deployer deploys the charts of deploy items to their targets.
type deployer struct {
	deployerlib.Base

	options  Options
	hooks    extension.ReconcileExtensionHooks
	manager  *managed.ResourceManager
	renderer *release.Renderer
	slots    *slots
}

var (
	_ deployerlib.RuntimeUser        = (*deployer)(nil)
	_ deployerlib.Resumer            = (*deployer)(nil)
	_ deployerlib.ContextFreeDeleter = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime validates the options and passes the runtime to the Keeper of the deployer.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("helm deployer: %w", err)
	}
	if err := d.manager.UseRuntime(rt); err != nil {
		return err
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return nil // UseRuntime has returned an error
	}
	return mgr.Add(metricsServer{d.options.Metrics, rt.Registerer})
}

// DeletesWithoutContext implements deployerlib.ContextFreeDeleter. Only the fetching of a chart needs the Context.
func (d *deployer) DeletesWithoutContext() {}

// run is one call of the deployer for an item.
type run struct {
	*resources.Run

	deployer *deployer
	context  *lsv1alpha1.Context
	config   *Config
	release  *ReleaseStatus // of the last deployment, or nil
	memory   *memory
}

// memory contains data about an item between calls. If it is lost, the only consequence is additional work.
type memory struct {
	// rendered is the chart that is being deployed in manifest mode. It is nil if no deployment is under way.
	rendered *deployment
	// operation is the operation on the release that is under way, or nil.
	operation *operation
	// document contains the values of the last rendering until they are exported.
	document *documentOf
	// records watches the records of the release.
	records recordWatch
	// tolerated are the objects whose changes by other clients are ignored, as found when they were applied last.
	tolerated map[apply.Ref]bool
	// exported identifies the exports whose values were stored last, together with the inputs.
	exported string
}

// memoryKey is the key of the memory of an item.
type memoryKey struct{}

// begin starts a call.
func (d *deployer) begin(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem) (*run, error) {
	shared, err := resources.Begin(ctx, d.manager, statusFormat, di)
	if err != nil {
		return nil, err
	}
	shared.EngineOptions = apply.Options{
		LandscaperLabel: helmv1alpha1.ManagedDeployItemLabel, Recreate: d.options.Recreate, SharedKinds: d.options.SharedKinds, Adoption: d.options.Adoption,
	}
	r := &run{Run: shared, deployer: d, context: lsCtx}
	r.memory = shared.Managed.GetOrCreateValue(memoryKey{}, func() any { return &memory{} }).(*memory)
	r.release, err = releaseOf(shared.Status)
	return r, err
}

// configure sets the configuration of a call.
func (r *run) configure(config *Config) {
	r.config, r.Config, r.EngineOptions.Strategy = config, &config.Config, config.Strategy
}

// Reconcile deploys the chart of an item.
func (d *deployer) Reconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, lsCtx, di)
	if err != nil {
		return err
	}
	config, err := Decode(di, d.options)
	if err != nil {
		return err
	}
	r.configure(config)
	if err := r.Managed.Connect(ctx, target); err != nil {
		return err
	}
	if config.HelmDeployment {
		return r.deployRelease(ctx)
	}
	return r.deployManifests(ctx)
}

// ForceReconcile is like Reconcile, but also writes objects that seem to be unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.manager.ForceResync(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete deletes the objects of the item. It needs neither the chart nor the Context. If the configuration is invalid,
// it deletes the objects in the built-in order.
func (d *deployer) Delete(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.begin(ctx, lsCtx, di)
	if err != nil {
		return err
	}
	config, err := Decode(di, d.options)
	if err == nil {
		r.configure(config)
	} else {
		r.Managed.RecordEvent(nil, corev1.EventTypeWarning, "InvalidConfiguration", "the objects are deleted in the default order, because the configuration is invalid: "+contract.OneLine(err.Error(), maxText))
	}
	if err := r.findLostRelease(ctx, target); err != nil {
		return err
	}
	if r.release != nil && (r.release.isHelm() || len(r.release.Former) > 0) {
		if err := r.uninstall(ctx, target); err != nil {
			return err
		}
	}
	return r.Delete(ctx, target, nil)
}

// maxText limits the length of the error text in an event, in bytes.
const maxText = 1024

// Resume watches the objects of a finished item. The deployer thereby also detects drift that occurred before the
// process was started.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	if target == nil {
		return nil
	}
	r, err := d.begin(ctx, nil, di)
	if err != nil {
		return err
	}
	return r.Managed.StartWatches(ctx, target)
}
