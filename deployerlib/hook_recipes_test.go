// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// docs/hooks.md shows the functions in this file, which register a hook each.

// addMaintenanceWindow lets a run wait until the maintenance window opens at 22:00.
func addMaintenanceWindow(hooks extension.ReconcileExtensionHooks, now func() time.Time) extension.ReconcileExtensionHooks {
	window := extension.OnItem(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error {
		if t := now().UTC(); t.Hour() < 22 {
			opens := time.Date(t.Year(), t.Month(), t.Day(), 22, 0, 0, 0, time.UTC)
			return deployerlib.WaitFor("the maintenance window at 22:00 UTC", opens.Sub(t))
		}
		return nil
	})
	return hooks.RegisterHook(extension.WithName("maintenance-window", window), extension.BeforeReconcileHook)
}

// addFreeze keeps a run from starting while the item is frozen.
func addFreeze(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	freeze := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Labels["example.org/frozen"] != "true" {
			return nil, nil
		}
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: time.Minute}}, nil
	}
	return hooks.RegisterHook(extension.WithName("freeze", freeze), extension.AfterResponsibilityCheckHook)
}

// addHourlyRun forces a run of each finished item that ran more than an hour ago.
func addHourlyRun(hooks extension.ReconcileExtensionHooks, now func() time.Time) extension.ReconcileExtensionHooks {
	hourly := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		last := di.Status.LastReconcileTime
		if last == nil {
			return nil, nil
		}
		if rest := last.Add(time.Hour).Sub(now()); rest > 0 {
			return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: rest}}, nil
		}
		return &extension.HookResult{}, nil
	}
	return hooks.RegisterHook(extension.WithName("hourly", hourly), extension.ShouldReconcileHook)
}

// addOwnerCheck ends the run of an item that lacks a label.
func addOwnerCheck(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	owned := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		if di.Labels["example.org/owner"] == "" {
			return deployerlib.NewConfigError("metadata.labels", "the label example.org/owner is required")
		}
		return nil
	})
	return hooks.RegisterHook(extension.WithName("owner", owned), extension.BeforeReconcileHook)
}

// addLog logs each call. An error of the hook would be logged, too.
func addLog(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	audit := extension.OnItem(func(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		log.Info("about to call the deployer", "generation", di.Generation)
		return nil
	})
	return hooks.RegisterHook(extension.WithName("audit", extension.WithFailurePolicy(extension.FailurePolicyIgnore, audit)), extension.BeforeAnyReconcileHook)
}

// addSuccessNotification calls a function after each successful action. If the function fails, the action is called
// again.
func addSuccessNotification(hooks extension.ReconcileExtensionHooks, notify func(item string) error) extension.ReconcileExtensionHooks {
	done := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		return notify(di.Name)
	})
	return hooks.RegisterHook(extension.WithName("notify", done), extension.EndHook)
}

// addPilotItems makes the deployer responsible for labelled items although its target selectors do not match their
// Target.
func addPilotItems(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	pilot := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Labels["example.org/pilot"] != "true" {
			return nil, nil // the responsibility check decides
		}
		return &extension.HookResult{}, nil
	}
	return hooks.RegisterHook(extension.WithName("pilot", pilot), extension.DuringResponsibilityCheckHook)
}

// withRecipe returns a setup that registers the hooks of a recipe.
func withRecipe(register func(w *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks) envOption {
	return func(w *testEnv, _ *deployerlib.DeployerArgs) {
		for t, hooks := range register(w, nil) {
			for _, h := range hooks {
				w.fake.RegisterHook(h, t)
			}
		}
	}
}

func withLabel(key string) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{key: "true"} }
}

func TestHookRecipes(t *testing.T) {
	timedOut := func(t *testing.T, w *testEnv, hook string) {
		t.Helper()
		w.clock.Step(contract.DefaultTimeout)
		w.runAttempt()
		e := w.getItem().Status.LastError
		if e == nil || !slices.Contains(e.Codes, lsv1alpha1.ErrorTimeout) || !strings.Contains(e.Message, hook) || len(w.listActions()) != 0 {
			t.Errorf("at the deadline: calls %v, lastError %+v", w.listActions(), e)
		}
	}
	t.Run("a run that a hook delays waits, continues in time, or ends at its deadline [F82]", func(t *testing.T) {
		window := withRecipe(func(w *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addMaintenanceWindow(hooks, w.clock.Now)
		})
		w := newTestEnv(t, newItems(withJob("1"), withTimeout(24*time.Hour)), window) // it is 03:04:05
		if ended := w.runAttempt(); ended.Queue.RequeueAfter != 18*time.Hour+55*time.Minute+55*time.Second {
			t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
		}
		w.clock.Step(19 * time.Hour)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		w = newTestEnv(t, newItems(withJob("1")), window)
		w.runAttempt()
		timedOut(t, w, "hook BeforeReconcile[0] (maintenance-window): waiting for the maintenance window at 22:00 UTC")
	})
	t.Run("a run that a hook holds back does not start, and has no deadline [F82]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), withLabel("example.org/frozen")), withRecipe(func(_ *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addFreeze(hooks)
		}))
		for range 3 {
			if ended := w.runAttempt(); ended.Queue.RequeueAfter != time.Minute {
				t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
			}
			w.clock.Step(contract.DefaultTimeout)
		}
		if s := w.getItem().Status; s.Phase != "" || s.LastError != nil || s.LastReconcileTime != nil {
			t.Errorf("phase %s, lastError %+v, want a run that has not started", s.Phase, s.LastError)
		}
	})
	t.Run("a hook that forces a run every hour starts background runs of a finished item [F82]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withRecipe(func(w *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addHourlyRun(hooks, w.clock.Now)
		}))
		w.runAttempt()
		if ended := w.runAttempt(); ended.Queue.RequeueAfter != time.Hour {
			t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
		}
		w.clock.Step(time.Hour)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a run that a hook rejects ends at once [F82]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withRecipe(func(_ *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addOwnerCheck(hooks)
		}))
		w.runAttempt()
		s := w.getItem().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" || !strings.Contains(s.LastError.Message, "the label example.org/owner is required") {
			t.Errorf("phase %s, lastError %+v, want phase Failed and an error about the label", s.Phase, s.LastError)
		}
		w.expectCalls()
	})
	t.Run("a hook that only logs changes nothing [F82]", func(t *testing.T) {
		var lines []string
		w := newTestEnv(t, newItems(withJob("1")), withRecipe(func(_ *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addLog(hooks)
		}))
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		w.RunAttempt(logr.NewContext(t.Context(), log), key)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "about to call the deployer") }) {
			t.Errorf("the log is %q", lines)
		}
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("a failure of a hook after success repeats the action until the deadline [F82]", func(t *testing.T) {
		fails, notified := true, []string{}
		w := newTestEnv(t, newItems(withJob("1")), withRecipe(func(_ *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return addSuccessNotification(hooks, func(item string) error {
				if fails {
					return errBoom
				}
				notified = append(notified, item)
				return nil
			})
		}))
		w.runAttempt()
		if s := w.getItem().Status; contract.IsFinal(s.Phase) || s.LastError == nil {
			t.Errorf("phase %s, lastError %+v, want a lastError and a phase that is not final", s.Phase, s.LastError)
		}
		fails = false
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Succeeded || fmt.Sprint(notified) != "[item]" {
			t.Errorf("phase %s, notified %v", s.Phase, notified)
		}
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a hook that claims more items makes the deployer run an item that its selectors do not match [F82]", func(t *testing.T) {
		w := newTestEnv(t, append(newItems(withJob("1"), withTarget, withLabel("example.org/pilot")), newTarget("other")), withSelector(),
			withRecipe(func(_ *testEnv, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
				return addPilotItems(hooks)
			}))
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
}
