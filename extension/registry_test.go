// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/extension"
)

// getCallOrder executes the hooks of a type and returns the names of the called hooks in order.
func getCallOrder(t *testing.T, hooks extension.ReconcileExtensionHooks, calls *[]string, typ extension.HookType) []string {
	t.Helper()
	*calls = nil
	if _, err := execute(t, hooks, typ); err != nil {
		t.Fatal(err)
	}
	return *calls
}

func TestRegisterHook(t *testing.T) {
	t.Run("RegisterHook appends a hook to each given type [L60] [L63]", func(t *testing.T) {
		var calls []string
		hooks := extension.ReconcileExtensionHooks{}
		hooks.RegisterHook(newHook(&calls, "a", nil, nil), extension.StartHook, extension.EndHook)
		hooks.RegisterHook(newHook(&calls, "b", nil, nil), extension.EndHook)
		hooks.RegisterHook(newHook(&calls, "c", nil, nil), extension.EndHook, extension.StartHook)
		if diff := cmp.Diff([]string{"a", "c"}, getCallOrder(t, hooks, &calls, extension.StartHook)); diff != "" {
			t.Errorf("Start: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "b", "c"}, getCallOrder(t, hooks, &calls, extension.EndHook)); diff != "" {
			t.Errorf("End: -want +got:\n%s", diff)
		}
	})
	t.Run("RegisterHook returns the map for chaining [L61]", func(t *testing.T) {
		hooks := extension.ReconcileExtensionHooks{}
		hooks.RegisterHook(doNothing, extension.StartHook).RegisterHook(doNothing, extension.EndHook)
		if len(hooks[extension.StartHook]) != 1 || len(hooks[extension.EndHook]) != 1 {
			t.Errorf("got %d and %d hooks, want one each", len(hooks[extension.StartHook]), len(hooks[extension.EndHook]))
		}
	})
	t.Run("RegisterHook without types has no effect [L62]", func(t *testing.T) {
		hooks := extension.ReconcileExtensionHooks{}
		hooks.RegisterHook(doNothing).RegisterHook(nil)
		if len(hooks) != 0 {
			t.Errorf("got %d types, want none", len(hooks))
		}
		var none extension.ReconcileExtensionHooks
		if got := none.RegisterHook(doNothing); got != nil {
			t.Error("nothing was registered, and the nil map became one")
		}
	})
	t.Run("RegisterHook returns a new map for a nil map [L67]", func(t *testing.T) {
		var none extension.ReconcileExtensionHooks
		hooks := none.RegisterHook(doNothing).RegisterHook(doNothing, extension.StartHook)
		if len(hooks[extension.StartHook]) != 1 || none != nil {
			t.Errorf("got %d hooks, and the nil map has %d", len(hooks[extension.StartHook]), len(none))
		}
	})
	t.Run("RegisterHook does not change a list that a shallow copy shares [L64]", func(t *testing.T) {
		var calls []string
		hooks := extension.ReconcileExtensionHooks{}
		hooks[extension.StartHook] = make([]extension.ReconcileExtensionHook, 0, 4)
		shallow := extension.ReconcileExtensionHooks{extension.StartHook: hooks[extension.StartHook]}
		hooks.RegisterHook(newHook(&calls, "a", nil, nil), extension.StartHook)
		shallow.RegisterHook(newHook(&calls, "b", nil, nil), extension.StartHook)
		if diff := cmp.Diff([]string{"a"}, getCallOrder(t, hooks, &calls, extension.StartHook)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestRegisterHookSetup(t *testing.T) {
	t.Run("RegisterHookSetup registers a hook for all types of the setup and returns the map [L65] [L66]", func(t *testing.T) {
		var calls []string
		var none extension.ReconcileExtensionHooks
		hooks := none.
			RegisterHookSetup(extension.ReconcileExtensionHookSetup{
				Hook:      newHook(&calls, "a", nil, nil),
				HookTypes: []extension.HookType{extension.StartHook, extension.EndHook},
			}).
			RegisterHookSetup(extension.ReconcileExtensionHookSetup{Hook: doNothing}).
			RegisterHookSetup(extension.ReconcileExtensionHookSetup{
				Hook:      newHook(&calls, "b", nil, nil),
				HookTypes: []extension.HookType{extension.EndHook},
			})
		if diff := cmp.Diff([]string{"a"}, getCallOrder(t, hooks, &calls, extension.StartHook)); diff != "" {
			t.Errorf("Start: -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a", "b"}, getCallOrder(t, hooks, &calls, extension.EndHook)); diff != "" {
			t.Errorf("End: -want +got:\n%s", diff)
		}
		if len(hooks) != 2 {
			t.Errorf("got %d types, want 2", len(hooks))
		}
	})
}

func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		hooks  extension.ReconcileExtensionHooks
		want   string
	}{
		"nil map [L67]":   {reason: "a deployer without hooks", hooks: nil},
		"empty map [L67]": {reason: "a deployer without hooks", hooks: extension.ReconcileExtensionHooks{}},
		"all types": {
			reason: "every hook type is known",
			hooks:  extension.ReconcileExtensionHooks{}.RegisterHook(doNothing, extension.AllHookTypes()...),
		},
		"several errors are reported together [L67] [Lx2]": {
			reason: "all errors are reported in a fixed order",
			hooks: extension.ReconcileExtensionHooks{"Stop": {nil}, "end": nil}.
				RegisterHook(doNothing, extension.EndHook).
				RegisterHook(nil, extension.EndHook, extension.StartHook),
			want: "hook End[1]: is nil\n" +
				"hook Start[0]: is nil\n" +
				`unknown hook type "Stop", want one of ` + types + "\n" +
				"hook Stop[0]: is nil\n" +
				`unknown hook type "end", want one of ` + types,
		},
		"decorated nil hooks [L67]": {
			reason: "a decorator does not hide a nil hook",
			hooks: extension.ReconcileExtensionHooks{}.
				RegisterHook(extension.WithName("x", extension.WithTimeout(1, extension.WithFailurePolicy(extension.FailurePolicyIgnore, nil))), extension.EndHook).
				RegisterHook(extension.When(nil, doNothing), extension.EndHook).
				RegisterHook(extension.OnItem(nil), extension.EndHook).
				RegisterHook(extension.OnStart(nil), extension.EndHook),
			want: "hook End[0]: is nil\nhook End[1]: is nil\nhook End[2]: is nil\nhook End[3]: is nil",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.hooks.Validate(); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

const types = `["Start" "DuringResponsibilityCheck" "AfterResponsibilityCheck" "ShouldReconcile" "BeforeAnyReconcile" ` +
	`"BeforeAbort" "BeforeForceReconcile" "BeforeDelete" "BeforeReconcile" "End"]`

func TestDeepCopy(t *testing.T) {
	t.Run("a copy of nil is nil [L67]", func(t *testing.T) {
		if got := extension.ReconcileExtensionHooks(nil).DeepCopy(); got != nil {
			t.Errorf("got %v, want nil", got)
		}
	})
	t.Run("later changes do not change the copy [L64]", func(t *testing.T) {
		var calls []string
		hooks := extension.ReconcileExtensionHooks{}.RegisterHook(newHook(&calls, "a", nil, nil), extension.StartHook)
		frozen := hooks.DeepCopy()
		hooks[extension.StartHook][0] = doNothing
		hooks.RegisterHook(doNothing, extension.StartHook, extension.EndHook)
		if len(frozen) != 1 {
			t.Errorf("got %d types, want 1", len(frozen))
		}
		if diff := cmp.Diff([]string{"a"}, getCallOrder(t, frozen, &calls, extension.StartHook)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
