// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/extension/continuousreconcile"
)

// NewHooks returns the hooks that start background runs. Return them from ExtensionHooks, together with further hooks
// if there are any. The hook "check-triggers" starts a run of an item if another client has changed its objects or if
// Trigger was called. If scheduled is not nil, it is the hook of a schedule. The runs that this hook starts are forced
// resyncs: they check every object, because the purpose of a schedule is to detect changes that watches do not report.
// NewHooks may be called before UseRuntime.
func (m *ResourceManager) NewHooks(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(extension.WithName("check-triggers", m.checkTriggers), extension.ShouldReconcileHook)
	if scheduled != nil {
		hooks = hooks.RegisterHook(extension.WithName(continuousreconcile.Name, m.wrapSchedule(scheduled)), extension.ShouldReconcileHook)
	}
	return hooks
}

// checkTriggers is the hook that starts a run of an item if the queue of the item contains a reason for a run. It does
// nothing if an annotation of the item disables continuous reconcile. If the run is not due yet, checkTriggers requeues
// the item for the time of the run.
func (m *ResourceManager) checkTriggers(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
	it := m.items.find(di.UID)
	if it == nil || di.DeletionTimestamp != nil || di.Annotations[continuousreconcile.ActiveAnnotation] == "false" {
		return nil, nil
	}
	due, notBefore := it.triggers.CheckDue()
	if !due {
		return nil, nil
	}
	if rest := notBefore.Sub(m.rt.Clock.Now()); rest > 0 {
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: rest}}, nil
	}
	return &extension.HookResult{}, nil
}

// wrapSchedule wraps the hook of a schedule. The wrapped hook starts thorough runs. A thorough run checks every object,
// even if no watch reported a change.
func (m *ResourceManager) wrapSchedule(scheduled extension.ReconcileExtensionHook) extension.ReconcileExtensionHook {
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		res, err := scheduled(ctx, log, di, target, t)
		if res != nil && !res.AbortReconcile && di != nil {
			m.items.get(di).triggers.ForceResync()
			if di.Status.Phase.IsFinal() {
				m.items.get(di).resetApplied()
			}
		}
		return res, err
	}
}
