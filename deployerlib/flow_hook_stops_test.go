// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
)

// waitingMessage returns the message of the condition Waiting of the stored item, or "" if it has none.
func (w *world) waitingMessage() string {
	w.t.Helper()
	c := contract.GetCondition(w.stored().Status.Conditions, contract.ConditionWaiting)
	if c == nil || c.Status != lsv1alpha1.ConditionTrue {
		return ""
	}
	return c.Message
}

// plain returns a hook without a name that returns a result and an error.
func plain(res *extension.HookResult, err func() error) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return res, err()
	}
}

func noError() error { return nil }

// withTimeout sets the timeout of the item.
func withTimeout(d time.Duration) change {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

func TestHookStopsRun(t *testing.T) {
	beforeActions := []extension.HookType{
		extension.BeforeAbortHook, extension.BeforeForceReconcileHook, extension.BeforeDeleteHook, extension.BeforeReconcileHook,
	}
	for _, hookType := range append(beforeActions, extension.AfterResponsibilityCheckHook, extension.BeforeAnyReconcileHook) {
		t.Run("the condition Waiting names a hook that aborts at "+string(hookType)+" [F81]", func(t *testing.T) {
			w := newWorld(t, objectsFor(hookType), withHooks(hookType))
			w.on(hookType, result(true, time.Hour), nil)
			w.pass()
			want := "hook " + string(hookType) + "[0] stopped the run and requested another reconcile after 1h0m0s"
			if got := w.waitingMessage(); got != want {
				t.Errorf("the condition Waiting has the message %q, want %q", got, want)
			}
			w.sent()
			w.clock.Step(time.Hour / 60)
			w.pass()
			w.wantSent() // the condition is already stored; a start needs no check, because this process made it
			w.on(hookType, nil, nil)
			if w.pass(); w.stored() == nil {
				return // deleted
			}
			if got := w.waitingMessage(); got != "" {
				t.Errorf("the hook no longer stops the run, but the condition Waiting has the message %q", got)
			}
		})
	}
	t.Run("the message names all hooks that abort, and says if none requests a reconcile [F81]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), func(w *world, _ *deployerlib.DeployerArgs) {
			w.fake.Hook(plain(result(true, 0), noError), extension.BeforeReconcileHook)
			w.fake.Hook(plain(nil, noError), extension.BeforeReconcileHook)
			w.fake.Hook(extension.Named("b", plain(result(true, 0), noError)), extension.BeforeReconcileHook)
		})
		w.pass()
		want := "hook BeforeReconcile[0], hook BeforeReconcile[2] (b) stopped the run and requested no other reconcile"
		if got := w.waitingMessage(); got != want {
			t.Errorf("the condition Waiting has the message %q, want %q", got, want)
		}
	})
	t.Run("the error of a timeout names the hook, not an earlier error [F81]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), withTimeout(6*time.Second)), withHooks(extension.BeforeReconcileHook))
		w.on(extension.BeforeReconcileHook, nil, errBoom)
		w.pass()
		w.on(extension.BeforeReconcileHook, result(true, time.Minute), nil)
		w.clock.Step(time.Second)
		w.pass()
		w.clock.Step(time.Minute)
		w.pass()
		e := w.stored().Status.LastError
		if e == nil || !strings.HasPrefix(e.Message, "not finished within 6s; last error: hook BeforeReconcile[0] stopped the run") {
			t.Errorf("lastError is %+v", e)
		}
		w.wantCalls()
	})
	t.Run("a run in progress ends at its deadline although a hook aborts after the responsibility check [F81]", func(t *testing.T) {
		w := newWorld(t, items(runningJob("1", -time.Minute), withTimeout(2*time.Minute)), withHooks(extension.AfterResponsibilityCheckHook))
		w.on(extension.AfterResponsibilityCheckHook, result(true, time.Hour), nil)
		if ended := w.pass(); ended.Queue.RequeueAfter != time.Minute {
			t.Errorf("the next reconcile is after %s, want the deadline", ended.Queue.RequeueAfter)
		}
		w.clock.Step(time.Minute)
		w.pass()
		s := w.stored().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" || !strings.Contains(s.LastError.Message, "hook AfterResponsibilityCheck[0] stopped") {
			t.Errorf("phase %s, lastError %+v, want phase Failed and the name of the hook", s.Phase, s.LastError)
		}
	})
	t.Run("a run that is held back before its start changes nothing but the condition [F81]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), job("2"), operation(lsv1alpha1.TestReconcileOperation)), withHooks())
		before := w.stored()
		w.on(extension.AfterResponsibilityCheckHook, result(true, time.Hour), nil)
		w.pass()
		after := w.stored()
		if w.waitingMessage() == "" {
			t.Error("there is no condition Waiting")
		}
		after.Status.Conditions, after.ResourceVersion = before.Status.Conditions, before.ResourceVersion
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the item was changed:\n%s", diff)
		}
		w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "2"; di.Annotations = nil }) // as Landscaper does at a pickup timeout
		w.on(extension.AfterResponsibilityCheckHook, nil, nil)
		w.pass()
		if got := w.waitingMessage(); got != "" {
			t.Errorf("nothing is due, but the condition Waiting has the message %q", got)
		}
	})
	t.Run("a background run or an item with nothing to do gets no condition [F81]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.BeforeReconcileHook} {
			w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks())
			w.on(extension.ShouldReconcileHook, result(false, 0), nil)
			w.on(hookType, result(true, time.Hour), nil)
			w.pass()
			if got := w.stored().Status.Conditions; len(got) != 0 {
				t.Errorf("%s: conditions %v", hookType, got)
			}
			w.wantCalls()
		}
	})
}

func TestHookWaits(t *testing.T) {
	windows := deployerlib.WaitFor("the maintenance window", time.Hour)
	for _, hookType := range extension.HookTypes() {
		t.Run("WaitFor at "+string(hookType)+" is not an error [F82]", func(t *testing.T) {
			w := newWorld(t, objectsFor(hookType), withHooks(hookType))
			before := w.stored()
			w.on(hookType, nil, windows)
			ended := w.pass()
			if ended.Err != nil || len(w.warnings) != 0 || w.stored().Status.LastError != nil {
				t.Errorf("error %v, events %v, lastError %+v", ended.Err, w.warnings, w.stored().Status.LastError)
			}
			unwritten := hookType == extension.StartHook || hookType == extension.DuringResponsibilityCheckHook
			if rest := ended.Queue.RequeueAfter; unwritten && rest != time.Hour || rest <= time.Minute {
				t.Errorf("the next reconcile is after %s", rest)
			}
			if unwritten {
				if diff := cmp.Diff(before, w.stored()); diff != "" {
					t.Errorf("the item was changed:\n%s", diff)
				}
				return
			}
			if got, want := w.waitingMessage(), "hook "+string(hookType)+"[0]: waiting for the maintenance window"; got != want {
				t.Errorf("the condition Waiting has the message %q, want %q", got, want)
			}
			if p := w.stored().Status.Phase; hookType != extension.BeforeAbortHook && p != phases.Progressing && p != phases.Deleting {
				t.Errorf("the phase is %s", p)
			}
			w.sent()
			w.pass()
			if hookType != extension.EndHook {
				w.wantSent()
			}
			calls := len(w.actions())
			if hookType != extension.EndHook && calls != 0 {
				t.Errorf("the deployer was called: %v", w.actions())
			}
			w.on(hookType, nil, nil)
			w.pass()
			if len(w.actions()) != calls+1 || w.stored() != nil && w.waitingMessage() != "" {
				t.Errorf("when the hook no longer waits: calls %v", w.actions())
			}
		})
	}
	t.Run("a run that a hook lets wait ends at its deadline, and the error names the hook [F82]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{
			extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook, extension.BeforeReconcileHook, extension.EndHook,
		} {
			w := newWorld(t, items(job("1")), withHooks(hookType))
			w.on(hookType, nil, windows)
			if ended := w.pass(); ended.Queue.RequeueAfter != contract.DefaultTimeout {
				t.Errorf("%s: the next reconcile is after %s, want the deadline", hookType, ended.Queue.RequeueAfter)
			}
			w.clock.Step(contract.DefaultTimeout)
			w.pass()
			s := w.stored().Status
			want := "not finished within 10m0s; last error: hook " + string(hookType) + "[0]: waiting for the maintenance window"
			if s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError.Message != want {
				t.Errorf("%s: phase %s, lastError %+v", hookType, s.Phase, s.LastError)
			}
		}
	})
	t.Run("an item with nothing to do is reconciled after the delay and does not change [F82]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook} {
			w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks(hookType))
			w.on(hookType, nil, windows)
			if ended := w.pass(); ended.Queue.RequeueAfter != time.Hour || ended.Err != nil {
				t.Errorf("%s: the next reconcile is after %s, error %v", hookType, ended.Queue.RequeueAfter, ended.Err)
			}
			w.wantSent()
		}
	})
	t.Run("a background run waits as it does for an action [F82]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks())
		w.on(extension.ShouldReconcileHook, result(false, 0), nil)
		w.on(extension.BeforeReconcileHook, nil, windows)
		w.pass()
		s := w.stored().Status
		if !contract.BackgroundWaits(w.stored()) || s.Phase != phases.Succeeded {
			t.Errorf("phase %s, conditions %v", s.Phase, s.Conditions)
		}
	})
	t.Run("a failure policy and a timeout pass WaitFor on [F82]", func(t *testing.T) {
		calls := 0
		window := func() error { calls++; return windows }
		for _, policy := range []extension.FailurePolicy{extension.Ignore, extension.Retry(3)} {
			calls = 0
			hook := extension.WithFailurePolicy(policy, extension.WithTimeout(time.Hour, plain(nil, window)))
			w := newWorld(t, items(job("1")), func(w *world, _ *deployerlib.DeployerArgs) { w.fake.Hook(hook, extension.BeforeReconcileHook) })
			w.pass()
			if calls != 1 || w.waitingMessage() != "hook BeforeReconcile[0]: waiting for the maintenance window" {
				t.Errorf("policy %d: %d calls, message %q", policy, calls, w.waitingMessage())
			}
		}
	})
	t.Run("an item that a hook has always held back is deleted without a call [F82]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"example.com/other"} }), withHooks())
		w.on(extension.AfterResponsibilityCheckHook, nil, windows)
		w.pass()
		if !contract.NeverDeployed(w.stored()) {
			t.Errorf("conditions %v", w.stored().Status.Conditions)
		}
	})
}
