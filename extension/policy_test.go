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

// failing returns a hook that fails n times, every second time with a panic, and then returns a result.
func failing(n int, calls *int) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
		*calls++
		switch {
		case *calls > n:
			return hookResult(true, false, 0), nil
		case *calls%2 == 0:
			panic(errBoom)
		default:
			return hookResult(false, true, 0), errBoom
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
		"fail, good":         {reason: "transparent", policy: extension.Fail, calls: 1, result: true},
		"fail, bad":          {reason: "transparent", policy: extension.Fail, failures: 9, calls: 1, err: "boom"},
		"ignore, good":       {reason: "transparent", policy: extension.Ignore, calls: 1, result: true},
		"ignore, bad":        {reason: "logged, no opinion", policy: extension.Ignore, failures: 9, calls: 1, log: `"msg"="hook failed; the error is ignored" "error"="boom" "hookType"="End" "hook"="quota"`},
		"retry, good":        {reason: "no call too many", policy: extension.Retry(3), calls: 1, result: true},
		"retry, good at end": {reason: "panics are failures, too", policy: extension.Retry(3), failures: 3, calls: 4, result: true},
		"retry, bad":         {reason: "the number of calls is in the text", policy: extension.Retry(2), failures: 9, calls: 3, err: "failed 3 times: boom"},
		"retry never":        {reason: "is Fail, not Ignore", policy: extension.Retry(-1), failures: 9, calls: 1, err: "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, lines := 0, []string{}
			log := funcr.New(func(prefix, args string) { lines = append(lines, prefix+args) }, funcr.Options{})
			hooks := extension.ReconcileExtensionHooks{}.RegisterHook(
				extension.Named("quota", extension.WithFailurePolicy(tc.policy, failing(tc.failures, &calls))), extension.EndHook)
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
	t.Run("retry ends with the context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := 0
		_, err := extension.WithFailurePolicy(extension.Retry(5), failing(9, &calls))(ctx, logr.Discard(), nil, nil, extension.EndHook)
		if err == nil || calls != 1 {
			t.Errorf("got %v after %d calls", err, calls)
		}
	})
	t.Run("a zero logger does no harm", func(t *testing.T) {
		calls := 0
		_, err := extension.WithFailurePolicy(extension.Ignore, failing(9, &calls))(t.Context(), logr.Logger{}, nil, nil, extension.EndHook)
		if err != nil {
			t.Error(err)
		}
	})
}
