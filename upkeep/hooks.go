// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// Hooks returns the hooks that begin background runs: "wake", for items that
// drifted or that somebody called Wake for, and scheduled, which makes the runs
// that it asks for thorough: a schedule is for indirect changes, which no watch
// shows. scheduled nil: no schedule. Return them from ExtensionHooks, with
// further hooks if there are any. They may be made before UseRuntime.
func (k *Keeper) Hooks(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(extension.Named("wake", k.wake), extension.ShouldReconcileHook)
	if scheduled != nil {
		hooks = hooks.RegisterHook(extension.Named(continuousreconcile.Name, k.thorough(scheduled)), extension.ShouldReconcileHook)
	}
	return hooks
}

// wake is a hook that forces a run for an item that wants one, unless its owner
// switched continuous reconcile off. A fight is slowed down.
func (k *Keeper) wake(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	it := k.items.find(di.UID)
	if it == nil || di.DeletionTimestamp != nil || di.Annotations[continuousreconcile.ActiveAnnotation] == "false" {
		return nil, nil
	}
	due, notBefore := it.due()
	if !due {
		return nil, nil
	}
	if rest := notBefore.Sub(k.rt.Clock.Now()); rest > 0 {
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: rest}}, nil
	}
	return &extension.HookResult{}, nil
}

// thorough notes that the schedule asks for a run: nothing is believed to be unchanged.
func (k *Keeper) thorough(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHook {
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		res, err := scheduled(ctx, log, di, target, t)
		if res != nil && !res.AbortReconcile && di != nil {
			k.Thorough(di)
			if di.Status.Phase.IsFinal() {
				k.items.get(di).beginAnew()
			}
		}
		return res, err
	}
}
