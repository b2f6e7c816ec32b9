// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// The decorators wrap a hook and return a hook. All of them return nil for a nil hook, so that Validate finds it.

// Named gives a hook the name that errors, traces and metrics show instead of "<Type>[<index>]". Use a constant: the
// name becomes a metric label. Of nested names the outermost is shown.
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

// Condition decides for [When] whether a hook is called. Item and target may be nil as for the hook itself.
type Condition func(ctx context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) bool

// When calls the hook only if cond returns true; otherwise the result is nil, no opinion. A nil condition gives nil.
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

// OnItem makes a hook of a function that only has effects on an item: it is never called without one and its result
// is always nil, so it can neither abort nor force. The target may be nil.
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

// OnStart makes a hook of a function that needs neither item nor target, as for [StartHook]. Its result is always nil.
func OnStart(f func(ctx context.Context, log logr.Logger) error) ReconcileExtensionHook {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ HookType) (*HookResult, error) {
		return nil, f(ctx, log)
	}
}
