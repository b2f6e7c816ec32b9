// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"context"
	"errors"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/targets"
)

// New returns the manifest deployer with further hooks besides its own, which
// heal drift at once and reconcile items on the schedule of their configuration.
func New(opts Options, hooks ...extension.ReconcileExtensionHookSetup) deployerlib.Deployer {
	d := &deployer{options: opts, items: newItems()}
	scheduled := continuousreconcile.ContinuousReconcileExtension(continuousreconcile.FromSpec(Schedule))
	d.hooks = extension.ReconcileExtensionHooks{}.
		RegisterHook(extension.Named("drift", d.healDrift), extension.ShouldReconcileHook).
		RegisterHook(extension.Named(continuousreconcile.Name, d.thorough(scheduled)), extension.ShouldReconcileHook)
	for _, setup := range hooks {
		d.hooks = d.hooks.RegisterHookSetup(setup)
	}
	return d
}

// deployer brings the manifests of deploy items to their targets.
type deployer struct {
	deployerlib.Base

	options Options
	hooks   extension.ReconcileExtensionHooks
	items   *items // what is known about items in memory

	rt       deployerlib.Runtime
	clusters *clusters
	secrets  client.Client // of the cluster with the deploy items
	scape    *landscape
}

var (
	_ deployerlib.RuntimeUser = (*deployer)(nil)
	_ deployerlib.Resumer     = (*deployer)(nil)
)

// ExtensionHooks returns the hooks.
func (d *deployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// UseRuntime makes the pool of target clients, which ends with the manager, and
// a client for export Secrets and tokens that asks the API server each time: the manager's
// own would cache every Secret of the cluster.
func (d *deployer) UseRuntime(rt deployerlib.Runtime) error {
	if err := d.options.Validate(); err != nil {
		return fmt.Errorf("manifest deployer: %w", err)
	}
	mgr, ok := rt.Landscaper.(manager.Manager)
	if !ok {
		return fmt.Errorf("manifest deployer: the Landscaper cluster is %T, not a manager", rt.Landscaper)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	var err error
	if d.secrets, err = client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme}); err != nil {
		return fmt.Errorf("make client for Secrets: %w", err)
	}
	d.rt, d.scape = rt, &landscape{reader: d.secrets}
	pool := targets.NewPool(targets.PoolOptions{
		Policy: d.options.Targets, Resolver: rt.Targets, Landscaper: mgr.GetConfig(), LandscaperClient: d.secrets, Clock: rt.Clock,
		WrapTransport: d.options.WrapTransport,
	})
	d.clusters = newClusters(pool, d.items, rt)
	return mgr.Add(d.clusters)
}

// Reconcile brings the item's manifests to its target.
func (d *deployer) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	r, err := d.newRun(ctx, di, target)
	if err != nil {
		return err
	}
	return r.reconcile(ctx)
}

// ForceReconcile is Reconcile without the belief that nothing changed.
func (d *deployer) ForceReconcile(ctx context.Context, lsCtx *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	d.items.get(di).setThorough(true)
	return d.Reconcile(ctx, lsCtx, di, target)
}
