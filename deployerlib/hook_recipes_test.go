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

// notNow lets a run wait until the maintenance window opens at 22:00.
func notNow(hooks extension.ReconcileExtensionHooks, now func() time.Time) extension.ReconcileExtensionHooks {
	window := extension.OnItem(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error {
		if t := now().UTC(); t.Hour() < 22 {
			opens := time.Date(t.Year(), t.Month(), t.Day(), 22, 0, 0, 0, time.UTC)
			return deployerlib.WaitFor("the maintenance window at 22:00 UTC", opens.Sub(t))
		}
		return nil
	})
	return hooks.RegisterHook(extension.Named("maintenance-window", window), extension.BeforeReconcileHook)
}

// notEvenStart keeps a run from starting while the item is frozen.
func notEvenStart(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	freeze := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Labels["example.org/frozen"] != "true" {
			return nil, nil
		}
		return &extension.HookResult{AbortReconcile: true, ReconcileResult: reconcile.Result{RequeueAfter: time.Minute}}, nil
	}
	return hooks.RegisterHook(extension.Named("freeze", freeze), extension.AfterResponsibilityCheckHook)
}

// everyHour forces a run of each finished item that ran more than an hour ago.
func everyHour(hooks extension.ReconcileExtensionHooks, now func() time.Time) extension.ReconcileExtensionHooks {
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
	return hooks.RegisterHook(extension.Named("hourly", hourly), extension.ShouldReconcileHook)
}

// refuse ends the run of an item that lacks a label.
func refuse(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	owned := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		if di.Labels["example.org/owner"] == "" {
			return deployerlib.ConfigError("metadata.labels", "the label example.org/owner is required")
		}
		return nil
	})
	return hooks.RegisterHook(extension.Named("owner", owned), extension.BeforeReconcileHook)
}

// onlyLog logs each call. An error of the hook would be logged, too.
func onlyLog(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	audit := extension.OnItem(func(_ context.Context, log logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		log.Info("about to call the deployer", "generation", di.Generation)
		return nil
	})
	return hooks.RegisterHook(extension.Named("audit", extension.WithFailurePolicy(extension.Ignore, audit)), extension.BeforeAnyReconcileHook)
}

// afterSuccess calls a function after each successful action. If the function fails, the action is called again.
func afterSuccess(hooks extension.ReconcileExtensionHooks, notify func(item string) error) extension.ReconcileExtensionHooks {
	done := extension.OnItem(func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) error {
		return notify(di.Name)
	})
	return hooks.RegisterHook(extension.Named("notify", done), extension.EndHook)
}

// claim makes the deployer responsible for labelled items although its target selectors do not match their Target.
func claim(hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
	pilot := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		if di.Labels["example.org/pilot"] != "true" {
			return nil, nil // the responsibility check decides
		}
		return &extension.HookResult{}, nil
	}
	return hooks.RegisterHook(extension.Named("pilot", pilot), extension.DuringResponsibilityCheckHook)
}

// recipe returns a setup that registers the hooks of a recipe.
func recipe(register func(w *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks) setup {
	return func(w *world, _ *deployerlib.DeployerArgs) {
		for t, hooks := range register(w, nil) {
			for _, h := range hooks {
				w.fake.Hook(h, t)
			}
		}
	}
}

func labelled(key string) change {
	return func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{key: "true"} }
}

func TestHookRecipes(t *testing.T) {
	timedOut := func(t *testing.T, w *world, hook string) {
		t.Helper()
		w.clock.Step(contract.DefaultTimeout)
		w.pass()
		e := w.stored().Status.LastError
		if e == nil || !slices.Contains(e.Codes, lsv1alpha1.ErrorTimeout) || !strings.Contains(e.Message, hook) || len(w.actions()) != 0 {
			t.Errorf("at the deadline: calls %v, lastError %+v", w.actions(), e)
		}
	}
	t.Run("a run that a hook delays waits, continues in time, or ends at its deadline [F82]", func(t *testing.T) {
		window := recipe(func(w *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return notNow(hooks, w.clock.Now)
		})
		w := newWorld(t, items(job("1"), withTimeout(24*time.Hour)), window) // it is 03:04:05
		if ended := w.pass(); ended.Queue.RequeueAfter != 18*time.Hour+55*time.Minute+55*time.Second {
			t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
		}
		w.clock.Step(19 * time.Hour)
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		w = newWorld(t, items(job("1")), window)
		w.pass()
		timedOut(t, w, "hook BeforeReconcile[0] (maintenance-window): waiting for the maintenance window at 22:00 UTC")
	})
	t.Run("a run that a hook holds back does not start, and has no deadline [F82]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), labelled("example.org/frozen")), recipe(func(_ *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return notEvenStart(hooks)
		}))
		for range 3 {
			if ended := w.pass(); ended.Queue.RequeueAfter != time.Minute {
				t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
			}
			w.clock.Step(contract.DefaultTimeout)
		}
		if s := w.stored().Status; s.Phase != "" || s.LastError != nil || s.LastReconcileTime != nil {
			t.Errorf("phase %s, lastError %+v, want a run that has not started", s.Phase, s.LastError)
		}
	})
	t.Run("a hook that forces a run every hour starts background runs of a finished item [F82]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), recipe(func(w *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return everyHour(hooks, w.clock.Now)
		}))
		w.pass()
		if ended := w.pass(); ended.Queue.RequeueAfter != time.Hour {
			t.Errorf("the next reconcile is after %s", ended.Queue.RequeueAfter)
		}
		w.clock.Step(time.Hour)
		w.pass()
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a run that a hook rejects ends at once [F82]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), recipe(func(_ *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return refuse(hooks)
		}))
		w.pass()
		s := w.stored().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" || !strings.Contains(s.LastError.Message, "the label example.org/owner is required") {
			t.Errorf("phase %s, lastError %+v, want phase Failed and an error about the label", s.Phase, s.LastError)
		}
		w.wantCalls()
	})
	t.Run("a hook that only logs changes nothing [F82]", func(t *testing.T) {
		var lines []string
		w := newWorld(t, items(job("1")), recipe(func(_ *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return onlyLog(hooks)
		}))
		log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
		w.Pass(logr.NewContext(t.Context(), log), key)
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "about to call the deployer") }) {
			t.Errorf("the log is %q", lines)
		}
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("a failure of a hook after success repeats the action until the deadline [F82]", func(t *testing.T) {
		fails, notified := true, []string{}
		w := newWorld(t, items(job("1")), recipe(func(_ *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
			return afterSuccess(hooks, func(item string) error {
				if fails {
					return errBoom
				}
				notified = append(notified, item)
				return nil
			})
		}))
		w.pass()
		if s := w.stored().Status; contract.IsFinal(s.Phase) || s.LastError == nil {
			t.Errorf("phase %s, lastError %+v, want a lastError and a phase that is not final", s.Phase, s.LastError)
		}
		fails = false
		w.pass()
		if s := w.stored().Status; s.Phase != phases.Succeeded || fmt.Sprint(notified) != "[item]" {
			t.Errorf("phase %s, notified %v", s.Phase, notified)
		}
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a hook that claims more items makes the deployer run an item that its selectors do not match [F82]", func(t *testing.T) {
		w := newWorld(t, append(items(job("1"), withTarget, labelled("example.org/pilot")), target("other")), withSelector(),
			recipe(func(_ *world, hooks extension.ReconcileExtensionHooks) extension.ReconcileExtensionHooks {
				return claim(hooks)
			}))
		w.pass()
		w.wantCalls(contract.ActionReconcile)
	})
}
