// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	cr "github.com/gardener/landscaper/apis/deployer/utils/continuousreconcile"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/managed"
	"github.com/deployerkit/deployerkit/observe"
	"github.com/deployerkit/deployerkit/stategraph/internal/target"
	"github.com/deployerkit/deployerkit/targets"
)

// These constants are the defaults of fields of Options.
const (
	defaultResync      = 10 * time.Hour
	defaultStartWithin = 5 * time.Minute
	defaultParallel    = 8
)

// Options configures the deployer of a graph. The zero value is ready to use.
type Options struct {
	// Resync is the interval after which all objects are applied again, because a watch may miss a change. Zero means 10
	// hours. A negative value means never. A positive value of less than one second is raised to one second.
	Resync time.Duration
	// StartWithin spreads out the runs after a restart of the process. Each finished item gets one run at a random time
	// within StartWithin after the start. Zero means 5 minutes. A negative value means that these runs start at once.
	StartWithin time.Duration
	// StatusGrace is the time after the creation of an object during which the object counts as not ready if it has no
	// status. It applies to custom kinds whose CustomResourceDefinition declares a status or cannot be read. Zero means
	// managed.DefaultStatusGrace. A negative value means that such an object counts as ready at once.
	StatusGrace time.Duration
	// Concurrency is the maximum number of components of one item that are reconciled at the same time. Zero means 8.
	Concurrency int
	// Targets is the policy for the kubeconfigs of Targets. It decides, for example, which hosts a Target may name. The
	// zero value is the strictest policy.
	Targets targets.Policy
	// TargetLimits limits the resources that the clients of targets use. The zero value means the defaults.
	TargetLimits targets.Limits
	// CleanUpFirst determines what happens first when an item moves to another cluster. If CleanUpFirst is true, the
	// objects in the old cluster are deleted before the item is deployed to the new cluster. Otherwise, they are deleted
	// afterwards.
	CleanUpFirst bool
	// Fights configures how the deployer handles other clients that change the same object again and again. It sets how
	// many changes count as a fight, and how long the deployer then waits before it corrects a change. The zero value
	// means the defaults. The clock in Fights is ignored.
	Fights observe.FightOptions
	// WrapTransport wraps the transport to each target. The wrapper gets every request, without credentials. It may be
	// nil.
	WrapTransport func(http.RoundTripper) http.RoundTripper
}

// withDefaults replaces zero values with the defaults.
func (o Options) withDefaults() Options {
	o.Resync, o.StartWithin = cmp.Or(o.Resync, defaultResync), cmp.Or(o.StartWithin, defaultStartWithin)
	o.Concurrency = cmp.Or(max(o.Concurrency, 0), defaultParallel)
	return o
}

// Args returns arguments for [deployerlib.Add], for a deployer that runs the graph for deploy items of type t. The
// deployer has the given name in status.deployer.name, events and metrics. The caller may change the result. If an
// argument is invalid, deployerlib.Add returns an error.
func Args(name string, t lsv1alpha1.DeployItemType, g *Graph, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.DeployerArgs {
	return deployerlib.DeployerArgs{Name: name, Type: t, Deployer: New(g, o, hooks...)}
}

// New returns the deployer of a graph. The given hooks run in addition to the hooks of the deployer. [deployerlib.Add]
// returns an error if the graph is nil.
//
// Each call of the deployer walks the graph once and does not wait for components to become ready. If a component is
// not ready, its listeners trigger the next call.
func New(g *Graph, o Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	o = o.withDefaults()
	manager := managed.New(managed.Options{
		Name: "state graph", Targets: o.Targets, TargetLimits: o.TargetLimits, WrapTransport: o.WrapTransport, Fights: o.Fights, StatusGrace: o.StatusGrace,
		CleanUpFirst: o.CleanUpFirst,
	})
	d := &deployer{graph: g, options: o, manager: manager, hooks: manager.NewHooks(o.newScheduleHook()), states: newStates()}
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// newScheduleHook returns a hook that triggers a run of each item at the interval o.Resync. It returns nil if the
// interval is negative.
func (o Options) newScheduleHook() extension.ReconcileExtensionHook {
	if o.Resync < 0 {
		return nil
	}
	spec := &cr.ContinuousReconcileSpec{Every: &lsv1alpha1.Duration{Duration: o.Resync}}
	return continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(
		func(*lsv1alpha1.DeployItem) (*cr.ContinuousReconcileSpec, error) { return spec, nil }))
}

// deployer runs a graph for all deploy items. It contains no data of items.
type deployer struct {
	graph   *Graph
	options Options
	manager *managed.ResourceManager
	hooks   extension.ReconcileExtensionHooks
	states  *prometheus.CounterVec
}

var (
	_ deployerlib.Deployer    = (*deployer)(nil)
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime gives the deployer access to targets, metrics and items. It also adds a Runnable to the manager. The
// Runnable reads the channels that components listen to.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if d.graph == nil {
		return errors.New("state graph: there is no graph (nil)")
	}
	if err := d.manager.UseRuntime(rt); err != nil {
		return err
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("state graph: the Landscaper cluster is %T, not a manager", rt.Landscaper)
	}
	d.graph.limit.Apply(mgr.GetLogger(), "Options.Resync", d.options.Resync) // the schedule itself rounds up to one second
	return mgr.Add(&channelListener{deployer: d, rt: rt, log: mgr.GetLogger().WithName("stategraph")})
}

// IgnoresContext implements deployerlib.ContextIgnorer.
func (d *deployer) IgnoresContext() {}

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

// ForceReconcile is like Reconcile, but checks all objects instead of assuming that some are unchanged.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.manager.ForceResync(di)
	return d.Reconcile(ctx, lsCtx, di, target)
}

// Delete removes all components of an item in reverse order.
func (d *deployer) Delete(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	c, err := d.begin(ctx, di)
	if err != nil {
		return err
	}
	return c.delete(ctx, target)
}

// Abort does nothing, because no work on an item continues after Reconcile or Delete has returned.
func (d *deployer) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Resume watches the objects of an item in the target. It also requests one run, because the graph may have changed
// since the last run.
func (d *deployer) Resume(ctx context.Context, di *lsv1alpha1.DeployItem, resolved *lsv1alpha1.ResolvedTarget) error {
	status, err := decodeStatus(di)
	if err != nil {
		return err
	}
	run, err := d.manager.Begin(ctx, di, status.Inventory, func(apply.Inventory) error { return nil })
	if err != nil {
		return err
	}
	if err := run.StartWatches(ctx, resolved); err != nil {
		return err
	}
	if target.GetMemory(run).HasRun() {
		return nil // a run in this process has already used the current graph
	}
	within := d.options.StartWithin
	if d.graph.timer > 0 {
		within = min(within, d.graph.timer)
	}
	d.triggerAfter(di.UID, time.Duration(float64(max(within, 0))*rand.Float64())) //nolint:gosec // spreads runs
	return nil
}

// triggerAfter requests a run of an item. The run starts after the given time.
func (d *deployer) triggerAfter(item types.UID, after time.Duration) {
	d.manager.Trigger(item, d.manager.GetRuntime().Clock.Now().Add(after))
}
