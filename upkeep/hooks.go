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

// Hooks returns the hooks that start background runs. Return them from ExtensionHooks, together with further hooks if
// there are any. The hook "wake" starts a run of an item if another client has changed its objects or if Wake was
// called. The parameter `scheduled` is the hook of a schedule, or nil. The runs that the hook of the schedule starts
// are thorough: they check every object, because the purpose of a schedule is to detect changes that watches do not
// report. Hooks may be called before UseRuntime.
func (k *Keeper) Hooks(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(extension.Named("wake", k.wake), extension.ShouldReconcileHook)
	if scheduled != nil {
		hooks = hooks.RegisterHook(extension.Named(continuousreconcile.Name, k.thorough(scheduled)), extension.ShouldReconcileHook)
	}
	return hooks
}

// wake is the hook that starts a run of an item if the queue of the item contains a reason for a run. It does nothing
// if an annotation of the item disables continuous reconcile. If the run is not due yet, wake requeues the item for the
// time of the run.
func (k *Keeper) wake(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	it := k.items.find(di.UID)
	if it == nil || di.DeletionTimestamp != nil || di.Annotations[continuousreconcile.ActiveAnnotation] == "false" {
		return nil, nil
	}
	due, notBefore := it.triggers.Due()
	if !due {
		return nil, nil
	}
	if rest := notBefore.Sub(k.rt.Clock.Now()); rest > 0 {
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: rest}}, nil
	}
	return &extension.HookResult{}, nil
}

// thorough wraps the hook of a schedule. The wrapped hook starts thorough runs. A thorough run checks every object,
// even if no watch reported a change.
func (k *Keeper) thorough(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHook {
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		res, err := scheduled(ctx, log, di, target, t)
		if res != nil && !res.AbortReconcile && di != nil {
			k.items.get(di).triggers.ForceResync()
			if di.Status.Phase.IsFinal() {
				k.items.get(di).beginAnew()
			}
		}
		return res, err
	}
}
