// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// The decorators wrap a hook and return a hook. If the wrapped hook is nil, the returned hook is nil too, so that
// Validate reports the nil hook.

// WithName sets the name of a hook in errors, traces and metrics. Without it, the name is "<Type>[<index>]". Use a
// constant, because the name becomes a metric label. If calls of WithName are nested, the outermost name is used.
func WithName(name string, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		if r := getRecord(ctx); r != nil {
			r.name.CompareAndSwap(nil, &name)
		}
		return hook(ctx, log, di, target, t)
	}
}

// Condition reports whether the decorator [When] calls a hook. The item and the target may be nil, as for the hook
// itself.
type Condition func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) bool

// When returns a hook that calls the given hook only if cond returns true. Otherwise the result is nil (no opinion). If
// cond is nil, the returned hook is nil.
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

// OnItem returns a hook that calls f only for its side effects. The hook does not call f if there is no item. The
// target may be nil. The result of the hook is always nil, so the hook can neither abort nor force a run.
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

// OnStart returns a hook that calls f without item and target, for example for [StartHook]. The result of the hook is
// always nil.
func OnStart(f func(ctx context.Context, log logr.Logger) error) ReconcileExtensionHook {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ HookType) (*HookResult, error) {
		return nil, f(ctx, log)
	}
}
