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

// getWaitingMessage returns the message of the condition Waiting of the stored item, or "" if it has none.
func (w *testEnv) getWaitingMessage() string {
	w.t.Helper()
	c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionWaiting)
	if c == nil || c.Status != lsv1alpha1.ConditionTrue {
		return ""
	}
	return c.Message
}

// newUnnamedHook returns a hook without a name that returns a result and an error.
func newUnnamedHook(res *extension.HookResult, err func() error) extension.ReconcileExtensionHook {
	return func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target, extension.HookType) (*extension.HookResult, error) {
		return res, err()
	}
}

func returnNoError() error { return nil }

// withTimeout sets the timeout of the item.
func withTimeout(d time.Duration) itemOption {
	return func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{Duration: d} }
}

func TestHookStopsRun(t *testing.T) {
	beforeActions := []extension.HookType{
		extension.BeforeAbortHook, extension.BeforeForceReconcileHook, extension.BeforeDeleteHook, extension.BeforeReconcileHook,
	}
	for _, hookType := range append(beforeActions, extension.AfterResponsibilityCheckHook, extension.BeforeAnyReconcileHook) {
		t.Run("the condition Waiting names a hook that aborts at "+string(hookType)+" [F81]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks(hookType))
			w.setHookResult(hookType, newHookResult(true, time.Hour), nil)
			w.runAttempt()
			want := "hook " + string(hookType) + "[0] stopped the run and requested another reconcile after 1h0m0s"
			if got := w.getWaitingMessage(); got != want {
				t.Errorf("the condition Waiting has the message %q, want %q", got, want)
			}
			w.popRequests()
			w.clock.Step(time.Hour / 60)
			w.runAttempt()
			w.expectRequests() // the condition is already stored; a start needs no check, because this process made it
			w.setHookResult(hookType, nil, nil)
			if w.runAttempt(); w.getItem() == nil {
				return // deleted
			}
			if got := w.getWaitingMessage(); got != "" {
				t.Errorf("the hook no longer stops the run, but the condition Waiting has the message %q", got)
			}
		})
	}
	t.Run("the message names all hooks that abort, and says if none requests a reconcile [F81]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), func(w *testEnv, _ *deployerlib.DeployerArgs) {
			w.fake.RegisterHook(newUnnamedHook(newHookResult(true, 0), returnNoError), extension.BeforeReconcileHook)
			w.fake.RegisterHook(newUnnamedHook(nil, returnNoError), extension.BeforeReconcileHook)
			w.fake.RegisterHook(extension.WithName("b", newUnnamedHook(newHookResult(true, 0), returnNoError)), extension.BeforeReconcileHook)
		})
		w.runAttempt()
		want := "hook BeforeReconcile[0], hook BeforeReconcile[2] (b) stopped the run and requested no other reconcile"
		if got := w.getWaitingMessage(); got != want {
			t.Errorf("the condition Waiting has the message %q, want %q", got, want)
		}
	})
	t.Run("the error of a timeout names the hook, not an earlier error [F81]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), withTimeout(6*time.Second)), withHooks(extension.BeforeReconcileHook))
		w.setHookResult(extension.BeforeReconcileHook, nil, errBoom)
		w.runAttempt()
		w.setHookResult(extension.BeforeReconcileHook, newHookResult(true, time.Minute), nil)
		w.clock.Step(time.Second)
		w.runAttempt()
		w.clock.Step(time.Minute)
		w.runAttempt()
		e := w.getItem().Status.LastError
		if e == nil || !strings.HasPrefix(e.Message, "not finished within 6s; last error: hook BeforeReconcile[0] stopped the run") {
			t.Errorf("lastError is %+v", e)
		}
		w.expectCalls()
	})
	t.Run("a run in progress ends at its deadline although a hook aborts after the responsibility check [F81]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRunningJob("1", -time.Minute), withTimeout(2*time.Minute)), withHooks(extension.AfterResponsibilityCheckHook))
		w.setHookResult(extension.AfterResponsibilityCheckHook, newHookResult(true, time.Hour), nil)
		if ended := w.runAttempt(); ended.Queue.RequeueAfter != time.Minute {
			t.Errorf("the next reconcile is after %s, want the deadline", ended.Queue.RequeueAfter)
		}
		w.clock.Step(time.Minute)
		w.runAttempt()
		s := w.getItem().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" || !strings.Contains(s.LastError.Message, "hook AfterResponsibilityCheck[0] stopped") {
			t.Errorf("phase %s, lastError %+v, want phase Failed and the name of the hook", s.Phase, s.LastError)
		}
	})
	t.Run("a run that is held back before its start changes nothing but the condition [F81]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withOperation(lsv1alpha1.TestReconcileOperation)), withHooks())
		before := w.getItem()
		w.setHookResult(extension.AfterResponsibilityCheckHook, newHookResult(true, time.Hour), nil)
		w.runAttempt()
		after := w.getItem()
		if w.getWaitingMessage() == "" {
			t.Error("there is no condition Waiting")
		}
		after.Status.Conditions, after.ResourceVersion = before.Status.Conditions, before.ResourceVersion
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("the item was changed:\n%s", diff)
		}
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished = "2"; di.Annotations = nil }) // as Landscaper does at a pickup timeout
		w.setHookResult(extension.AfterResponsibilityCheckHook, nil, nil)
		w.runAttempt()
		if got := w.getWaitingMessage(); got != "" {
			t.Errorf("nothing is due, but the condition Waiting has the message %q", got)
		}
	})
	t.Run("a background run or an item with nothing to do gets no condition [F81]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.BeforeReconcileHook} {
			w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
			w.setHookResult(hookType, newHookResult(true, time.Hour), nil)
			w.runAttempt()
			if got := w.getItem().Status.Conditions; len(got) != 0 {
				t.Errorf("%s: conditions %v", hookType, got)
			}
			w.expectCalls()
		}
	})
}

func TestHookWaits(t *testing.T) {
	windows := deployerlib.WaitFor("the maintenance window", time.Hour)
	for _, hookType := range extension.AllHookTypes() {
		t.Run("a hook at "+string(hookType)+" may return WaitFor, and this is no error [F82]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks(hookType))
			before := w.getItem()
			w.setHookResult(hookType, nil, windows)
			ended := w.runAttempt()
			if ended.Err != nil || len(w.warnings) != 0 || w.getItem().Status.LastError != nil {
				t.Errorf("error %v, events %v, lastError %+v", ended.Err, w.warnings, w.getItem().Status.LastError)
			}
			unwritten := hookType == extension.StartHook || hookType == extension.DuringResponsibilityCheckHook
			if rest := ended.Queue.RequeueAfter; unwritten && rest != time.Hour || rest <= time.Minute {
				t.Errorf("the next reconcile is after %s", rest)
			}
			if unwritten {
				if diff := cmp.Diff(before, w.getItem()); diff != "" {
					t.Errorf("the item was changed:\n%s", diff)
				}
				return
			}
			if got, want := w.getWaitingMessage(), "hook "+string(hookType)+"[0]: waiting for the maintenance window"; got != want {
				t.Errorf("the condition Waiting has the message %q, want %q", got, want)
			}
			if p := w.getItem().Status.Phase; hookType != extension.BeforeAbortHook && p != phases.Progressing && p != phases.Deleting {
				t.Errorf("the phase is %s", p)
			}
			w.popRequests()
			w.runAttempt()
			if hookType != extension.EndHook {
				w.expectRequests()
			}
			calls := len(w.listActions())
			if hookType != extension.EndHook && calls != 0 {
				t.Errorf("the deployer was called: %v", w.listActions())
			}
			w.setHookResult(hookType, nil, nil)
			w.runAttempt()
			if len(w.listActions()) != calls+1 || w.getItem() != nil && w.getWaitingMessage() != "" {
				t.Errorf("when the hook no longer waits: calls %v", w.listActions())
			}
		})
	}
	t.Run("a run that a hook lets wait ends at its deadline, and the error names the hook [F82]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{
			extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook, extension.BeforeReconcileHook, extension.EndHook,
		} {
			w := newTestEnv(t, newItems(withJob("1")), withHooks(hookType))
			w.setHookResult(hookType, nil, windows)
			if ended := w.runAttempt(); ended.Queue.RequeueAfter != contract.DefaultTimeout {
				t.Errorf("%s: the next reconcile is after %s, want the deadline", hookType, ended.Queue.RequeueAfter)
			}
			w.clock.Step(contract.DefaultTimeout)
			w.runAttempt()
			s := w.getItem().Status
			want := "not finished within 10m0s; last error: hook " + string(hookType) + "[0]: waiting for the maintenance window"
			if s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError.Message != want {
				t.Errorf("%s: phase %s, lastError %+v", hookType, s.Phase, s.LastError)
			}
		}
	})
	t.Run("an item with nothing to do is reconciled after the delay and does not change [F82]", func(t *testing.T) {
		for _, hookType := range []extension.HookType{extension.AfterResponsibilityCheckHook, extension.ShouldReconcileHook} {
			w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(hookType))
			w.setHookResult(hookType, nil, windows)
			if ended := w.runAttempt(); ended.Queue.RequeueAfter != time.Hour || ended.Err != nil {
				t.Errorf("%s: the next reconcile is after %s, error %v", hookType, ended.Queue.RequeueAfter, ended.Err)
			}
			w.expectRequests()
		}
	})
	t.Run("a background run waits as it does for an action [F82]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
		w.setHookResult(extension.BeforeReconcileHook, nil, windows)
		w.runAttempt()
		s := w.getItem().Status
		if !contract.IsBackgroundWaiting(w.getItem()) || s.Phase != phases.Succeeded {
			t.Errorf("phase %s, conditions %v", s.Phase, s.Conditions)
		}
	})
	t.Run("a failure policy and a timeout pass WaitFor on [F82]", func(t *testing.T) {
		calls := 0
		window := func() error { calls++; return windows }
		for _, policy := range []extension.FailurePolicy{extension.FailurePolicyIgnore, extension.FailurePolicyRetry(3)} {
			calls = 0
			hook := extension.WithFailurePolicy(policy, extension.WithTimeout(time.Hour, newUnnamedHook(nil, window)))
			w := newTestEnv(t, newItems(withJob("1")), func(w *testEnv, _ *deployerlib.DeployerArgs) {
				w.fake.RegisterHook(hook, extension.BeforeReconcileHook)
			})
			w.runAttempt()
			if calls != 1 || w.getWaitingMessage() != "hook BeforeReconcile[0]: waiting for the maintenance window" {
				t.Errorf("policy %d: %d calls, message %q", policy, calls, w.getWaitingMessage())
			}
		}
	})
	t.Run("an item that a hook has always held back is deleted without a call [F82]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Finalizers = []string{"example.com/other"} }), withHooks())
		w.setHookResult(extension.AfterResponsibilityCheckHook, nil, windows)
		w.runAttempt()
		if !contract.WasNeverDeployed(w.getItem()) {
			t.Errorf("conditions %v", w.getItem().Status.Conditions)
		}
	})
}
