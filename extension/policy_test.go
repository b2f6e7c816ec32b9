// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/deployerkit/deployerkit/extension"
)

// newFailingHook returns a hook that fails n times, every second time with a panic, and then returns a result.
func newFailingHook(n int, calls *int) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
		*calls++
		switch {
		case *calls > n:
			return newHookResult(true, false, 0), nil
		case *calls%2 == 0:
			panic(errBoom)
		default:
			return newHookResult(false, true, 0), errBoom
		}
	}
}

func TestWithFailurePolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		policy   extension.FailurePolicy
		failures int
		calls    int
		result   bool
		err      string
		log      string
	}{
		"Fail with a hook that succeeds":                   {reason: "transparent", policy: extension.FailurePolicyFail, calls: 1, result: true},
		"Fail with a hook that fails":                      {reason: "transparent", policy: extension.FailurePolicyFail, failures: 9, calls: 1, err: "boom"},
		"Ignore with a hook that succeeds":                 {reason: "transparent", policy: extension.FailurePolicyIgnore, calls: 1, result: true},
		"Ignore with a hook that fails":                    {reason: "logged, no opinion", policy: extension.FailurePolicyIgnore, failures: 9, calls: 1, log: `"msg"="hook failed; the error is ignored" "error"="boom" "hookType"="End" "hook"="quota"`},
		"Retry with a hook that succeeds":                  {reason: "no additional call", policy: extension.FailurePolicyRetry(3), calls: 1, result: true},
		"Retry with a hook that succeeds in the last call": {reason: "panics are failures, too", policy: extension.FailurePolicyRetry(3), failures: 3, calls: 4, result: true},
		"Retry with a hook that fails":                     {reason: "the error contains the number of calls", policy: extension.FailurePolicyRetry(2), failures: 9, calls: 3, err: "failed 3 times: boom"},
		"Retry with a negative number":                     {reason: "is Fail, not Ignore", policy: extension.FailurePolicyRetry(-1), failures: 9, calls: 1, err: "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, lines := 0, []string{}
			log := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{})
			hooks := extension.ReconcileExtensionHooks{}.RegisterHook(
				extension.WithName("quota", extension.WithFailurePolicy(tc.policy, newFailingHook(tc.failures, &calls))), extension.EndHook)
			got, err := hooks.ExecuteHooks(t.Context(), log, nil, nil, extension.EndHook)
			if calls != tc.calls {
				t.Errorf("%s: got %d calls, want %d", tc.reason, calls, tc.calls)
			}
			if (got != nil) != tc.result || (got != nil && !got.AbortReconcile) {
				t.Errorf("%s: got the result %v", tc.reason, got)
			}
			if (err != nil) != (tc.err != "") || (err != nil && (err.Error() != "hook End[0] (quota): "+tc.err || !errors.Is(err, errBoom))) {
				t.Errorf("%s: got %v, want %q", tc.reason, err, tc.err)
			}
			if log := strings.Join(lines, "\n"); log != tc.log {
				t.Errorf("%s: got the log %s, want %s", tc.reason, log, tc.log)
			}
		})
	}
	t.Run("FailurePolicyRetry stops when the context ends", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := 0
		_, err := extension.WithFailurePolicy(extension.FailurePolicyRetry(5), newFailingHook(9, &calls))(ctx, logr.Discard(), nil, nil, extension.EndHook)
		if err == nil || calls != 1 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})
	t.Run("a policy works with a zero logger", func(t *testing.T) {
		calls := 0
		_, err := extension.WithFailurePolicy(extension.FailurePolicyIgnore, newFailingHook(9, &calls))(t.Context(), logr.Logger{}, nil, nil, extension.EndHook)
		if err != nil {
			t.Error(err)
		}
	})
}
