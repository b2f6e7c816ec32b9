// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

func TestNamed(t *testing.T) {
	t.Run("WithName works outside of ExecuteHooks", func(t *testing.T) {
		want := newHookResult(true, false, 0)
		got, err := extension.WithName("x", newHook(new([]string), "", want, errBoom))(t.Context(), logr.Discard(), nil, nil, extension.StartHook)
		if got != want || !errors.Is(err, errBoom) {
			t.Errorf("Named(...)() = %v, %v, want %v, %v", got, err, want, errBoom)
		}
	})
}

func TestWhen(t *testing.T) {
	var calls []string
	deleting := func(_ context.Context, di *lsv1alpha1.DeployItem, target *lsv1alpha1.Target, typ extension.HookType) bool {
		return di.Name == "yes" && target.Name == "yes" && typ == extension.EndHook
	}
	hook := extension.When(deleting, newHook(&calls, "called", newHookResult(true, false, 0), errBoom))
	for name, tc := range map[string]struct {
		item string
		typ  extension.HookType
		want []string
	}{
		"the condition holds":            {item: "yes", typ: extension.EndHook, want: []string{"called"}},
		"the condition rejects the item": {item: "no", typ: extension.EndHook},
		"the condition rejects the type": {item: "yes", typ: extension.StartHook},
	} {
		t.Run(name, func(t *testing.T) {
			calls = nil
			di, target := &lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}
			di.Name, target.Name = tc.item, "yes"
			got, err := hook(t.Context(), logr.Discard(), di, target, tc.typ)
			if diff := cmp.Diff(tc.want, calls); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if called := len(tc.want) > 0; (got != nil) != called || (err != nil) != called {
				t.Errorf("result %v, error %v, want both only if the hook was called: %t", got, err, called)
			}
		})
	}
}

func TestOnItem(t *testing.T) {
	var got *lsv1alpha1.DeployItem
	hook := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		got = di
		return errBoom
	})
	t.Run("OnItem does not call the hook without an item", func(t *testing.T) {
		if r, err := hook(t.Context(), logr.Discard(), nil, nil, extension.StartHook); r != nil || err != nil || got != nil {
			t.Errorf("got %v, %v and %v", r, err, got)
		}
	})
	t.Run("OnItem returns the error of the hook but no result", func(t *testing.T) {
		di := &lsv1alpha1.DeployItem{}
		if r, err := hook(t.Context(), logr.Discard(), di, nil, extension.ShouldReconcileHook); r != nil || !errors.Is(err, errBoom) || got != di {
			t.Errorf("got %v, %v and %v", r, err, got)
		}
	})
}

func TestOnStart(t *testing.T) {
	called := 0
	hook := extension.OnStart(func(context.Context, logr.Logger) error {
		called++
		return errBoom
	})
	if r, err := hook(t.Context(), logr.Discard(), nil, nil, extension.StartHook); r != nil || !errors.Is(err, errBoom) || called != 1 {
		t.Errorf("got %v, %v and %d calls", r, err, called)
	}
}
