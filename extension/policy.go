// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/internal/waiting"
)

// FailurePolicy determines how [WithFailurePolicy] handles an error of a hook. The zero value is FailurePolicyFail.
type FailurePolicy int

const (
	// FailurePolicyFail returns the error, and the reconcile ends with this error. A hook without a policy has the same
	// effect.
	FailurePolicyFail FailurePolicy = 0
	// FailurePolicyIgnore logs the error and continues as if the hook had no opinion.
	FailurePolicyIgnore FailurePolicy = -1
)

// FailurePolicyRetry returns a policy that calls a failing hook up to n more times without a delay, and then returns
// the last error. If the context of the call is done, there are no more calls. If n is 0 or less, the policy is
// FailurePolicyFail.
func FailurePolicyRetry(n int) FailurePolicy {
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
		result, err := recoverPanic(call)
		calls := 1
		for ; isFailure(err) && calls <= int(p) && ctx.Err() == nil; calls++ {
			result, err = recoverPanic(call)
		}
		switch {
		case !isFailure(err):
			return result, err
		case p < 0:
			log.Error(err, "hook failed; the error is ignored", "hookType", string(t), "hook", nameFromContext(ctx))
			return nil, nil
		case calls > 1:
			return nil, fmt.Errorf("failed %d times: %w", calls, err)
		default:
			return nil, err
		}
	}
}

// isFailure reports whether the error of a hook is a failure. An error of deployerlib.WaitFor is none.
func isFailure(err error) bool {
	_, waits := waiting.AsError(err)
	return err != nil && !waits
}

// nameFromContext returns the name of the running hook, or "" if it has none.
func nameFromContext(ctx context.Context) string {
	if r := getRecord(ctx); r != nil {
		if name := r.name.Load(); name != nil {
			return *name
		}
	}
	return ""
}
