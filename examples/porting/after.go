// SPDX-License-Identifier: Apache-2.0

package porting

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
	"github.com/deployerkit/deployerkit/patch"
	"github.com/deployerkit/deployerkit/targets"
)

const pollInterval = 5 * time.Second

// After is a deployer after it has been ported to this library. It contains the code that docs/porting.md shows.
type After struct {
	Client client.Client // reads from the API server
	Pool   *targets.Pool
	Next   continuousreconcile.NextFunc
	Work   func(context.Context, *After, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error
	IsDone func(context.Context, client.Client) (bool, error)
}

// Reconcile calls Work.
func (d *After) Reconcile(ctx context.Context, _ *lsv1alpha1.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	return d.Work(ctx, d, di, target)
}

// Delete does nothing, because there is nothing to remove.
func (d *After) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Abort does nothing, because there is nothing to clean up.
func (d *After) Abort(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// Add adds the deployer.
func Add(log logr.Logger, lsMgr, hostMgr manager.Manager, deployer *After) error {
	return deployerlib.Add(log, lsMgr, hostMgr, deployerlib.DeployerArgs{
		Name:     "disk-deployer",
		Type:     "example.org/disk",
		Deployer: deployerlib.Port(deployer, nil),
	})
}

// AddClassic adds a deployer that was written for Landscaper's own library up to v0.27.
func AddClassic(log logr.Logger, lsMgr, hostMgr manager.Manager, deployer deployerlib.ClassicDeployer) error {
	return deployerlib.Add(log, lsMgr, hostMgr, deployerlib.DeployerArgs{
		Name:     "disk-deployer",
		Type:     "example.org/disk",
		Deployer: deployerlib.PortClassic(deployer, deployerlib.ClassicOptions{FailAfter: 5 * time.Minute}),
	})
}

// audit is a hook.
func audit(_ context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	return nil, nil
}

// ExtensionHooks returns the hooks.
func (d *After) ExtensionHooks() deployerlib.PortedHooks {
	hooks := deployerlib.PortedHooks{}
	hooks.RegisterHook(audit, extension.BeforeDeleteHook)
	hooks.RegisterHookSetup(continuousreconcile.ContinuousReconcileExtensionSetup(d.Next))
	return hooks
}

// Status changes the status in memory. The library writes it.
func (d *After) Status(di *lsv1alpha1.DeployItem) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	return nil
}

// Annotate adds an annotation, which the library writes.
func (d *After) Annotate(ctx context.Context) {
	patch.FromContext(ctx).Annotations().Set("example.org/disk", "d1")
}

// Export writes an export.
func (d *After) Export(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	return deployerlib.WriteExport(ctx, d.Client, di, map[string]string{"disk": "d1"})
}

// ProviderStatus sets the data that the deployer needs in later calls.
func (d *After) ProviderStatus(di *lsv1alpha1.DeployItem, status any) error {
	kind := schema.GroupVersionKind{Group: "disk.example.org", Version: "v1", Kind: "ProviderStatus"}
	return deployerlib.SetProviderStatus(di, status, kind)
}

// Ready checks the target and waits if it is not ready.
func (d *After) Ready(ctx context.Context, target *lsv1alpha1.ResolvedTarget) error {
	c, err := d.Pool.Get(ctx, target)
	if err != nil {
		return err
	}
	ready, err := d.IsDone(ctx, c)
	if err != nil || ready {
		return err
	}
	return deployerlib.WaitFor("the disk", pollInterval)
}
