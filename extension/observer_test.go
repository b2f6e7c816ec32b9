// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deployerkit/deployerkit/extension"
)

func TestObserver(t *testing.T) {
	now := time.Unix(0, 0)
	works := func(d time.Duration, r *result, err error) extension.ReconcileExtensionHook {
		return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
			now = now.Add(d)
			return r, err
		}
	}
	hooks := extension.ReconcileExtensionHooks{}.
		RegisterHook(works(time.Second, nil, nil), extension.StartHook).
		RegisterHook(extension.WithName("outer", extension.WithName("inner", works(time.Minute, newHookResult(true, false, 0), nil))), extension.StartHook).
		RegisterHook(works(0, nil, nil), extension.StartHook).
		RegisterHook(extension.WithName("fails", works(time.Hour, newHookResult(true, false, 0), errBoom)), extension.StartHook)

	for name, tc := range map[string]struct {
		now  func() time.Time
		unit time.Duration
	}{
		"with a clock":    {now: func() time.Time { return now }, unit: 1},
		"without a clock": {now: nil, unit: 0},
	} {
		t.Run(name, func(t *testing.T) {
			type key struct{}
			var got []extension.HookCall
			ctx := extension.WithObserver(t.Context(), extension.Observer{Now: tc.now, Done: func(ctx context.Context, c extension.HookCall) {
				if ctx.Value(key{}) != "pass" {
					t.Errorf("the observer has another context")
				}
				got = append(got, c)
			}})
			ctx = context.WithValue(ctx, key{}, "pass")
			if _, err := hooks.ExecuteHooks(ctx, logr.Discard(), nil, nil, extension.StartHook); err == nil {
				t.Error("want an error")
			}
			want := []extension.HookCall{
				{Type: extension.StartHook, Index: 0, Name: "Start[0]", Duration: time.Second * tc.unit},
				{Type: extension.StartHook, Index: 1, Name: "outer", Result: newHookResult(true, false, 0), Duration: time.Minute * tc.unit},
				{Type: extension.StartHook, Index: 2, Name: "Start[2]"},
				{Type: extension.StartHook, Index: 3, Name: "fails", Err: errBoom, Duration: time.Hour * tc.unit},
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}

	t.Run("an empty observer has no effect", func(t *testing.T) {
		ctx := extension.WithObserver(t.Context(), extension.Observer{})
		if _, err := hooks.ExecuteHooks(ctx, logr.Discard(), nil, nil, extension.StartHook); err == nil {
			t.Error("want an error")
		}
	})
	t.Run("hooks that run other hooks are observed by their own names", func(t *testing.T) {
		nested := extension.ReconcileExtensionHooks{}.RegisterHook(extension.WithName("nested", doNothing), extension.EndHook)
		outer := extension.ReconcileExtensionHooks{}.RegisterHook(
			func(ctx context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, _ extension.HookType) (*result, error) {
				return nested.ExecuteHooks(ctx, log, di, target, extension.EndHook)
			}, extension.StartHook)
		var names []string
		ctx := extension.WithObserver(t.Context(), extension.Observer{Done: func(_ context.Context, c extension.HookCall) { names = append(names, c.Name) }})
		if _, err := outer.ExecuteHooks(ctx, logr.Discard(), nil, nil, extension.StartHook); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"nested", "Start[0]"}, names); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
