// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/internal/waiting"
)

// FailurePolicy determines how [WithFailurePolicy] handles an error of a hook. The zero value is Fail.
type FailurePolicy int

const (
	// Fail returns the error, and the reconcile ends with this error. A hook without a policy has the same effect.
	Fail FailurePolicy = 0
	// Ignore logs the error and continues as if the hook had no opinion.
	Ignore FailurePolicy = -1
)

// Retry returns a policy that calls a failing hook up to n more times without a delay, and then returns the last error.
// If the context of the call is done, there are no more calls. If n is 0 or less, the policy is Fail.
func Retry(n int) FailurePolicy {
	return FailurePolicy(max(n, 0))
}

// WithFailurePolicy applies p to errors and panics of the hook, but not to errors of deployerlib.WaitFor. Changes that
// a failed call made to the item's status in memory are kept.
func WithFailurePolicy(p FailurePolicy, hook ReconcileExtensionHook) ReconcileExtensionHook {
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, t HookType) (*HookResult, error) {
		call := func() (*HookResult, error) { return hook(ctx, log, di, target, t) }
		result, err := guard(call)
		calls := 1
		for ; failed(err) && calls <= int(p) && ctx.Err() == nil; calls++ {
			result, err = guard(call)
		}
		switch {
		case !failed(err):
			return result, err
		case p < 0:
			log.Error(err, "hook failed; the error is ignored", "hookType", string(t), "hook", nameIn(ctx))
			return nil, nil
		case calls > 1:
			return nil, fmt.Errorf("failed %d times: %w", calls, err)
		default:
			return nil, err
		}
	}
}

// failed reports whether the error of a hook is a failure. An error of deployerlib.WaitFor is none.
func failed(err error) bool {
	_, waits := waiting.Of(err)
	return err != nil && !waits
}

// nameIn returns the name of the running hook, or "" if it has none.
func nameIn(ctx context.Context) string {
	if r := recordOf(ctx); r != nil {
		if name := r.name.Load(); name != nil {
			return *name
		}
	}
	return ""
}
