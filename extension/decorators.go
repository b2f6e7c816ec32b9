// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// The decorators wrap a hook and return a hook. All of them return nil if the hook is nil, so that Validate reports it.

// Named sets the name of a hook in errors, traces and metrics, which is "<Type>[<index>]" otherwise. Use a constant,
// because the name becomes a metric label. If names are nested, the outermost is used.
func Named(name string, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		if r := recordOf(ctx); r != nil {
			r.name.CompareAndSwap(nil, &name)
		}
		return hook(ctx, log, di, target, t)
	}
}

// Condition decides for [When] whether a hook is called. The item and the target may be nil, as for the hook itself.
type Condition func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) bool

// When calls the hook only if cond returns true. Otherwise the result is nil (no opinion). When returns nil if cond is
// nil.
func When(cond Condition, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if hook == nil || cond == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		if !cond(ctx, di, target, t) {
			return nil, nil
		}
		return hook(ctx, log, di, target, t)
	}
}

// OnItem returns a hook that calls f for its side effects on an item. It does not call f if there is no item. The
// target may be nil. The result of the hook is always nil, so it can neither abort nor force a run.
func OnItem(f func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target) error) ReconcileExtensionHook {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, _ HookType) (*HookResult, error) {
		if di == nil {
			return nil, nil
		}
		return nil, f(ctx, log, di, target)
	}
}

// OnStart returns a hook that calls f, which needs neither item nor target, as for [StartHook]. The result of the hook
// is always nil.
func OnStart(f func(ctx context.Context, log logr.Logger) error) ReconcileExtensionHook {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ HookType) (*HookResult, error) {
		return nil, f(ctx, log)
	}
}
