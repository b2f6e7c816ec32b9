// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

func TestExecuteHooksOrder(t *testing.T) {
	t.Run("hooks run in the order of registration and receive their type [Lx1] [L6]", func(t *testing.T) {
		var calls []string
		record := func(name string) extension.ReconcileExtensionHook {
			return func(_ context.Context, _ logr.Logger, _ *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, typ extension.HookType) (*result, error) {
				calls = append(calls, name+" "+string(typ))
				return nil, nil
			}
		}
		hooks := extension.ReconcileExtensionHooks{}.
			RegisterHook(record("a"), extension.AllHookTypes()...).
			RegisterHook(record("b"), extension.AllHookTypes()...)
		var want []string
		for _, typ := range extension.AllHookTypes() {
			want = append(want, "a "+string(typ), "b "+string(typ))
			if got, err := execute(t, hooks, typ); got != nil || err != nil {
				t.Errorf("got %v and %v, want nothing", got, err)
			}
		}
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("hooks receive item, target and context", func(t *testing.T) {
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "value")
		item, target := &lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}
		hooks := extension.ReconcileExtensionHooks{}.RegisterHook(
			func(ctx context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, tgt *lsv1alpha1.Target, _ extension.HookType) (*result, error) {
				if di != item || tgt != target || ctx.Value(key{}) != "value" {
					t.Errorf("got %p, %p and %v", di, tgt, ctx.Value(key{}))
				}
				return nil, nil
			}, extension.EndHook)
		if _, err := hooks.ExecuteHooks(ctx, logr.Discard(), item, target, extension.EndHook); err != nil {
			t.Error(err)
		}
	})
	t.Run("a hook that aborts does not prevent the other hooks [L11]", func(t *testing.T) {
		for _, typ := range extension.AllHookTypes() {
			var calls []string
			hooks := extension.ReconcileExtensionHooks{}.
				RegisterHook(newHook(&calls, "a", newHookResult(true, true, 0), nil), typ).
				RegisterHook(newHook(&calls, "b", nil, nil), typ)
			got, err := execute(t, hooks, typ)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(newHookResult(true, true, 0), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", typ, diff)
			}
			if diff := cmp.Diff([]string{"a", "b"}, calls); diff != "" {
				t.Errorf("%s: -want +got:\n%s", typ, diff)
			}
		}
	})
}

func TestExecuteHooksMergesResults(t *testing.T) {
	t.Run("abort is merged with AND for two types [L17] [L41] [L50] and with OR for the rest [L16]", func(t *testing.T) {
		all := map[extension.HookType]bool{extension.DuringResponsibilityCheckHook: true, extension.ShouldReconcileHook: true}
		for _, typ := range extension.AllHookTypes() {
			var calls []string
			hooks := extension.ReconcileExtensionHooks{}.
				RegisterHook(newHook(&calls, "a", newHookResult(true, false, 3), nil), typ).
				RegisterHook(newHook(&calls, "b", nil, nil), typ).
				RegisterHook(newHook(&calls, "c", newHookResult(false, false, 2), nil), typ)
			got, err := execute(t, hooks, typ)
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(newHookResult(!all[typ], false, 2), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", typ, diff)
			}
		}
	})
	t.Run("the result is a copy of the results of the hooks [L15]", func(t *testing.T) {
		shared := withPriority(newHookResult(false, false, 5), 1)
		var calls []string
		hooks := extension.ReconcileExtensionHooks{}.
			RegisterHook(newHook(&calls, "a", shared, nil), extension.EndHook).
			RegisterHook(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
				shared.AbortReconcile = true
				*shared.ReconcileResult.Priority = 9
				return nil, nil
			}, extension.EndHook)
		got, err := execute(t, hooks, extension.EndHook)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(withPriority(newHookResult(false, false, 5), 1), got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestExecuteHooksErrors(t *testing.T) {
	forced := newHookResult(false, true, time.Minute)
	for name, tc := range map[string]struct {
		reason string
		hook   extension.ReconcileExtensionHook
		typ    extension.HookType
		want   string
		is     error
	}{
		"an error stops [Lx1] and drops every result [L12]": {
			reason: "the error contains index and type", hook: newHook(new([]string), "", forced, errBoom), want: "hook BeforeReconcile[1]: boom", is: errBoom,
		},
		"a named hook [Lx1]": {
			reason: "the error contains the name", hook: extension.WithName("quota", newHook(new([]string), "", forced, errBoom)),
			want: "hook BeforeReconcile[1] (quota): boom", is: errBoom,
		},
		"a nil hook [L67]":                  {reason: "no panic in production", hook: nil, want: "hook BeforeReconcile[1]: is nil"},
		"a panic":                           {reason: "an error in one line", hook: newPanicHook("a\n\tb"), want: "hook BeforeReconcile[1]: panic: a b"},
		"a panic of a named hook":           {reason: "the name is known", hook: extension.WithName("x", newPanicHook("a")), want: "hook BeforeReconcile[1] (x): panic: a"},
		"a panic with an error":             {reason: "it can be found", hook: newPanicHook(errBoom), want: "hook BeforeReconcile[1]: panic: boom", is: errBoom},
		"an unknown type [Lx2]":             {reason: "a typo must not be silent", typ: "Stop", want: `unknown hook type "Stop", want one of ` + types},
		"an empty type [Lx2]":               {reason: "a typo must not be silent", typ: "-", want: `unknown hook type "-", want one of ` + types},
		"the wrong case [Lx2]":              {reason: "types are exact", typ: "start", want: `unknown hook type "start", want one of ` + types},
		"an unknown type with a hook [Lx2]": {reason: "registered nevertheless", typ: "Other", want: `unknown hook type "Other", want one of ` + types},
	} {
		t.Run(name, func(t *testing.T) {
			typ := tc.typ
			if typ == "" {
				typ = extension.BeforeReconcileHook
			}
			var calls []string
			hooks := extension.ReconcileExtensionHooks{}.
				RegisterHook(newHook(&calls, "before", forced, nil), extension.BeforeReconcileHook, "Other").
				RegisterHook(tc.hook, extension.BeforeReconcileHook).
				RegisterHook(newHook(&calls, "after", forced, nil), extension.BeforeReconcileHook)
			got, err := execute(t, hooks, typ)
			if got != nil {
				t.Errorf("%s: got the result %v, want nil", tc.reason, got)
			}
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%s: %v does not wrap %v", tc.reason, err, tc.is)
			}
			if len(calls) > 0 && calls[len(calls)-1] == "after" {
				t.Errorf("%s: a hook ran after the error", tc.reason)
			}
		})
	}
}

func newPanicHook(value any) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
		panic(value)
	}
}

func TestPanicError(t *testing.T) {
	hooks := extension.ReconcileExtensionHooks{}.RegisterHook(newPanicHook(strings.Repeat("ä ", 5000)), extension.StartHook)
	_, err := execute(t, hooks, extension.StartHook)
	var p *extension.PanicError
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a PanicError", err)
	}
	if !strings.Contains(string(p.Stack), "newPanicHook") {
		t.Errorf("the stack does not show the hook:\n%s", p.Stack)
	}
	if n := len(p.Error()); n > 1100 {
		t.Errorf("got a text of %d bytes", n)
	}
}

func TestExecuteHooksWithoutHooks(t *testing.T) {
	for name, hooks := range map[string]extension.ReconcileExtensionHooks{
		"nil map [L67]": nil,
		"empty map":     {},
		"empty list":    {extension.StartHook: {}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := execute(t, hooks, extension.StartHook); got != nil || err != nil {
				t.Errorf("got %v and %v, want nothing", got, err)
			}
		})
	}
}

func TestRegistrationWhileRunning(t *testing.T) {
	t.Run("a registration does not affect a running execution [L64]", func(t *testing.T) {
		var calls []string
		hooks := extension.ReconcileExtensionHooks{}
		hooks.RegisterHook(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
			calls = append(calls, "a")
			hooks.RegisterHook(newHook(&calls, "late", nil, nil), extension.StartHook)
			return nil, nil
		}, extension.StartHook)
		hooks.RegisterHook(newHook(&calls, "b", nil, nil), extension.StartHook)
		if _, err := execute(t, hooks, extension.StartHook); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a", "b"}, calls); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
	t.Run("a registration does not race with the execution of a copy [L64]", func(t *testing.T) {
		var lock sync.Mutex
		original := extension.ReconcileExtensionHooks{}
		original.RegisterHook(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*result, error) {
			lock.Lock()
			defer lock.Unlock()
			original.RegisterHook(doNothing, extension.StartHook)
			return nil, nil
		}, extension.StartHook)
		frozen := original.DeepCopy()
		var workers sync.WaitGroup
		for range 8 {
			workers.Go(func() {
				for range 100 {
					if _, err := execute(t, frozen, extension.StartHook); err != nil {
						t.Error(err)
					}
				}
			})
		}
		workers.Wait()
		if got := len(original[extension.StartHook]); got != 801 {
			t.Errorf("got %d hooks, want 801", got)
		}
	})
}
