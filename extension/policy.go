// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
)

// FailurePolicy says for [WithFailurePolicy] what an error of a hook means. The zero value is Fail.
type FailurePolicy int

const (
	// Fail returns the error: the pass ends, as for a hook without a policy.
	Fail FailurePolicy = 0
	// Ignore logs the error and goes on as if the hook had no opinion.
	Ignore FailurePolicy = -1
)

// Retry calls a failing hook up to n more times, at once and without waiting, as long as its context lives, and then
// fails with the last error. n ≤ 0 is Fail.
func Retry(n int) FailurePolicy {
	return FailurePolicy(max(n, 0))
}

// WithFailurePolicy applies p to errors and panics of the hook. What a failed call changed in the item's status in
// memory stays changed.
func WithFailurePolicy(p FailurePolicy, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		call := func() (*HookResult, error) { return hook(ctx, log, di, target, t) }
		result, err := guard(call)
		calls := 1
		for ; err != nil && calls <= int(p) && ctx.Err() == nil; calls++ {
			result, err = guard(call)
		}
		switch {
		case err == nil:
			return result, nil
		case p < 0:
			log.Error(err, "ignored the error of a hook", "hookType", string(t), "hook", nameIn(ctx))
			return nil, nil
		case calls > 1:
			return nil, fmt.Errorf("failed %d times: %w", calls, err)
		default:
			return nil, err
		}
	}
}

// nameIn returns the name of the running hook, "" if it has none.
func nameIn(ctx context.Context) string {
	if r := recordOf(ctx); r != nil {
		if name := r.name.Load(); name != nil {
			return *name
		}
	}
	return ""
}
