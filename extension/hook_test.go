// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/extension"
)

var errBoom = errors.New("boom")

// These declarations compile only if the types are as documented.
var (
	_ func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) = extension.ReconcileExtensionHook(nil)

	_ map[extension.HookType][]extension.ReconcileExtensionHook = extension.ReconcileExtensionHooks(nil)

	_ = extension.HookResult{ReconcileResult: reconcile.Result{}, AbortReconcile: true}
	_ = extension.ReconcileExtensionHookSetup{Hook: extension.ReconcileExtensionHook(nil), HookTypes: []extension.HookType{}}
)

func TestTypesOfHooks(t *testing.T) {
	for name, tc := range map[string]struct {
		got  reflect.Type
		want string
	}{
		"a hook is a function [L5]": {
			got:  reflect.TypeFor[extension.ReconcileExtensionHook](),
			want: "func(context.Context, logr.Logger, *v1alpha1.DeployItem, *v1alpha1.Target, extension.HookType) (*extension.HookResult, error)",
		},
		"a hook result has two fields [L7]": {
			got:  reflect.TypeFor[extension.HookResult](),
			want: "struct { ReconcileResult reconcile.Result; AbortReconcile bool }",
		},
		"the registry is a map of lists [L59]": {
			got:  reflect.TypeFor[extension.ReconcileExtensionHooks](),
			want: "map[extension.HookType][]extension.ReconcileExtensionHook",
		},
		"a setup contains a hook and its types [L65]": {
			got:  reflect.TypeFor[extension.ReconcileExtensionHookSetup](),
			want: "struct { Hook extension.ReconcileExtensionHook; HookTypes []extension.HookType }",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := getUnderlyingType(tc.got); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// getUnderlyingType returns the underlying type of a type, as text.
func getUnderlyingType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Func:
		in, out := []reflect.Type{}, []reflect.Type{}
		for p := range t.Ins() {
			in = append(in, p)
		}
		for p := range t.Outs() {
			out = append(out, p)
		}
		return reflect.FuncOf(in, out, t.IsVariadic()).String()
	case reflect.Map:
		return reflect.MapOf(t.Key(), t.Elem()).String()
	default:
		fields := reflect.VisibleFields(t)
		return reflect.StructOf(fields).String()
	}
}

func TestHookTypeValues(t *testing.T) {
	for typ, want := range map[extension.HookType]string{
		extension.StartHook:                     "Start",
		extension.DuringResponsibilityCheckHook: "DuringResponsibilityCheck",
		extension.AfterResponsibilityCheckHook:  "AfterResponsibilityCheck",
		extension.ShouldReconcileHook:           "ShouldReconcile",
		extension.BeforeAnyReconcileHook:        "BeforeAnyReconcile",
		extension.BeforeAbortHook:               "BeforeAbort",
		extension.BeforeForceReconcileHook:      "BeforeForceReconcile",
		extension.BeforeDeleteHook:              "BeforeDelete",
		extension.BeforeReconcileHook:           "BeforeReconcile",
		extension.EndHook:                       "End",
	} {
		if string(typ) != want {
			t.Errorf("got %q, want %q", typ, want)
		}
	}
}

// newHook creates a hook. Each call of the hook returns the given result and error, and appends the name of the
// hook to the list of calls.
func newHook(calls *[]string, name string, result *extension.HookResult, err error) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		*calls = append(*calls, name)
		return result, err
	}
}

func doNothing(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
	return nil, nil
}

// execute runs the hooks of a type with an empty item and an empty target.
func execute(t *testing.T, hooks extension.ReconcileExtensionHooks, typ extension.HookType) (*extension.HookResult, error) {
	t.Helper()
	return hooks.ExecuteHooks(t.Context(), logr.Discard(), &lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}, typ)
}
