// SPDX-License-Identifier: Apache-2.0

// Package before contains parts of a deployer before it is ported to this library. docs/porting.md shows this code. The
// code is compiled with declarations that replace Landscaper's library. It is never run.
package before

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib"
	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib/extension"
	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib/interruption"
	"github.com/deployerkit/deployerkit/examples/porting/before/internal/lib/timeout"
)

const pollInterval = 5 * time.Second

// Deployer is a deployer that uses Landscaper's library.
type Deployer struct {
	client client.Client
	scheme *runtime.Scheme
	ready  func(context.Context, client.Client) (bool, error)
}

// Add adds the deployer.
func Add(log logr.Logger, lsMgr, hostMgr manager.Manager, deployer *Deployer) error {
	return lib.Add(log, lsMgr, hostMgr, lib.DeployerArgs{
		Name:     "disk-deployer",
		Type:     "example.org/disk",
		Deployer: deployer,
	})
}

// audit is a hook.
func audit(_ context.Context, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	return nil, nil
}

// ExtensionHooks returns the hooks.
func (d *Deployer) ExtensionHooks() extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}
	hooks.RegisterHook(audit, extension.BeforeDeleteHook)
	return hooks
}

// Status writes the status.
func (d *Deployer) Status(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	di.Status.Phase = lsv1alpha1.DeployItemPhases.Succeeded
	return d.client.Status().Update(ctx, di)
}

// Annotate writes an annotation.
func (d *Deployer) Annotate(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	di.Annotations["example.org/disk"] = "d1"
	return d.client.Update(ctx, di)
}

// Export writes an export.
func (d *Deployer) Export(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	return lib.CreateOrUpdateExport(ctx, d.client, di, map[string]string{"disk": "d1"})
}

// ProviderStatus stores the data that the deployer needs in later calls.
func (d *Deployer) ProviderStatus(di *lsv1alpha1.DeployItem, status runtime.Object) error {
	return lib.SetProviderStatus(di, status, d.scheme)
}

// Ready waits until the target is ready.
func (d *Deployer) Ready(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.ResolvedTarget) error {
	c, err := lib.GetTargetClient(ctx, target)
	if err != nil {
		return err
	}
	for {
		if _, err := timeout.TimeoutExceeded(ctx, di, "wait for the disk"); err != nil {
			return err
		}
		if err := interruption.NewStandardInterruptionChecker(di, d.client).Check(ctx); err != nil {
			return err
		}
		if ready, err := d.ready(ctx, c); err != nil || ready {
			return err
		}
		<-time.After(pollInterval)
	}
}
