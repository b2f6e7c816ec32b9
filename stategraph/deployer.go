// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/watch"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
	"github.com/deployerkit/deployerkit/targets"
	"github.com/deployerkit/deployerkit/upkeep"
)

// These are defaults of Options.
const (
	DefaultResync      = 10 * time.Hour
	DefaultStartWithin = 5 * time.Minute
	DefaultParallel    = 8
)

// Options configures the deployer of a graph. The zero value is ready to use.
type Options struct {
	// Resync is the interval at which everything is applied again, as protection against changes that no watch reports.
	// Zero means DefaultResync. A negative value means never.
	Resync time.Duration
	// StartWithin spreads the run that each finished item gets after the process started. Zero means
	// DefaultStartWithin. A negative value means at once.
	StartWithin time.Duration
	// StatusGrace is how long after its creation an object of a custom kind without a status is not ready, if the
	// definition of the kind does not describe its status. Zero means upkeep.DefaultStatusGrace. A negative value means
	// no time.
	StatusGrace time.Duration
	// Parallel is how many components of one item run at once. Zero means DefaultParallel.
	Parallel int
	// Targets is what Targets may ask for. The zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits bounds the resources that targets use. The zero value means the defaults.
	TargetLimits targets.Limits
	// CleanUpFirst makes an item that moves to another cluster wait until its objects in the old one are deleted.
	// Without it, the item is deployed to the new cluster first.
	CleanUpFirst bool
	// Fights configures when repeated changes by others count as a fight, and how long the deployer then waits before
	// it corrects them. The zero value means the defaults. The clock is that of the library.
	Fights watch.GuardOptions
	// WrapTransport wraps the transport to each target. It sees every request, without credentials. It may be nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// withDefaults returns the options with defaults for zero values.
func (o Options) withDefaults() Options {
	if o.Resync == 0 {
		o.Resync = DefaultResync
	}
	if o.StartWithin == 0 {
		o.StartWithin = DefaultStartWithin
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	return o
}

// Args returns what [deployerlib.Add] needs to run the graph for deploy items of a type. name is the name of the
// deployer in status.deployer.name, events and metrics. The caller may change the result. Add reports faults.
func Args(name string, t lsv1alpha1.DeployItemType, g *Graph, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	return deployerlib.DeployerArgs{Name: name, Type: t, Deployer: New(g, o, hooks...)}
}

// New returns the deployer of a graph, with further hooks in addition to its own. [deployerlib.Add] returns an error if
// the graph is nil.
//
// One call is one walk, which waits for nothing. Listeners of components that are not ready trigger the next one.
func New(g *Graph, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	o = o.withDefaults()
	keeper := upkeep.New(upkeep.Options{
		Name: "state graph", Targets: o.Targets, TargetLimits: o.TargetLimits, WrapTransport: o.WrapTransport, Fights: o.Fights, StatusGrace: o.StatusGrace,
		CleanUpFirst: o.CleanUpFirst,
	})
	d := &deployer{graph: g, options: o, keeper: keeper, hooks: keeper.Hooks(o.schedule()), metrics: newMetrics()}
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// schedule returns the hook for the regular runs, or nil if there are none.
func (o Options) schedule() extension.ReconcileExtensionHook {
	if o.Resync < 0 {
		return nil
	}
	spec := &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: o.Resync}}
	return continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(
		func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, nil }))
}

// deployer walks a graph for each deploy item. Nothing in it belongs to a single item.
type deployer struct {
	graph   *Graph
	options Options
	keeper  *upkeep.Keeper
	hooks   extension.ReconcileExtensionHooks
	metrics *metrics
}

var (
	_ deployerlib.Deployer    = (*deployer)(nil)
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime connects the deployer with the target clients and metrics of the process, and with the channels that
// components listen to.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if d.graph == nil {
		return errors.New("state graph: there is no graph (nil)")
	}
	if err := d.keeper.UseRuntime(rt); err != nil {
		return err
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("state graph: the Landscaper cluster is %T, not a manager", rt.Landscaper)
	}
	return mgr.Add(&attendance{deployer: d, rt: rt, log: mgr.GetLogger().WithName("stategraph")})
}

// Reconcile walks the graph once.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	c, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	if target != nil {
		if err := c.run.Connect(ctx, target); err != nil {
			return err
		}
	}
	return c.reconcile(ctx)
}

// ForceReconcile does the same as Reconcile, but does not assume that anything is unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.keeper.Thorough(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete removes everything, in reverse order.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	c, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	return c.delete(ctx, target)
}

// Abort does nothing, because a walk leaves nothing running.
func (d *deployer) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Resume watches the objects of the item in its target, and requests one run, because the graph may have changed since
// the last one.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, resolved *lsv1alpha1.ResolvedTarget) error {
	status, err := decodeStatus(di)
	if err != nil {
		return err
	}
	run, err := d.keeper.Begin(ctx, di, status.Inventory, func(apply.Inventory) error { return nil })
	if err != nil {
		return err
	}
	if err := run.Resume(ctx, resolved); err != nil {
		return err
	}
	if target.MemoryOf(run).HasRun() {
		return nil // in this process
	}
	within := d.options.StartWithin
	if d.graph.timer > 0 {
		within = min(within, d.graph.timer)
	}
	d.wakeIn(di.UID, time.Duration(float64(max(within, 0))*rand.Float64())) //nolint:gosec // spreads runs
	return nil
}

// wakeIn requests a run of an item after a while.
func (d *deployer) wakeIn(item types.UID, after time.Duration) {
	d.keeper.Wake(item, d.keeper.Runtime().Clock.Now().Add(after))
}
