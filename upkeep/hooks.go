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

// Hooks returns the hooks that start background runs. The hook "wake" serves items that drifted or for which Wake was
// called. scheduled makes its runs thorough, because a schedule is for indirect changes, which no watch shows; it is
// nil if there is no schedule. Return the hooks from ExtensionHooks, with further hooks if there are any. Hooks may
// be called before UseRuntime.
func (k *Keeper) Hooks(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(extension.Named("wake", k.wake), extension.ShouldReconcileHook)
	if scheduled != nil {
		hooks = hooks.RegisterHook(extension.Named(continuousreconcile.Name, k.thorough(scheduled)), extension.ShouldReconcileHook)
	}
	return hooks
}

// wake is a hook that forces a run of an item with a trigger, unless its owner switched continuous reconcile off. It
// slows down a fight.
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

// thorough returns a hook that makes the runs of a schedule thorough, so that no object is trusted to be unchanged.
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
