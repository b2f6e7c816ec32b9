// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// withPause adds the pause annotation to the item.
func withPause(di *lsv1alpha1.DeployItem) { di.Annotations[contract.PausedAnnotation] = "true" }

// withoutPause removes the pause annotation from the item.
func withoutPause(di *lsv1alpha1.DeployItem) { delete(di.Annotations, contract.PausedAnnotation) }

// withNewGeneration increments the generation of the item.
func withNewGeneration(di *lsv1alpha1.DeployItem) { di.Generation++ }

// expectPaused checks whether the condition Paused is true.
func (w *testEnv) expectPaused(want bool) {
	w.t.Helper()
	c := contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionPaused)
	if got := c != nil && c.Status == lsv1alpha1.ConditionTrue; got != want {
		w.t.Errorf("got the condition Paused %+v, want it to exist: %t", c, want)
	}
}

func TestPauseHoldsBack(t *testing.T) {
	tests := map[string]struct {
		changes []itemOption
		then    contract.Action
		sent    []string // the requests that are sent after the end of the pause
	}{
		"a job [Yx2]":                        {[]itemOption{withFinishedJob("1", phases.Succeeded), withJob("2")}, contract.ActionReconcile, []string{"patch status", "patch status"}},
		"a job that deletes [Yx2]":           {[]itemOption{withFinishedJob("1", phases.Succeeded), withProviderStatus, withJob("2"), withDeletion}, contract.ActionDelete, []string{"patch status", "patch"}},
		"test-reconcile [Yx2]":               {[]itemOption{withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.TestReconcileOperation)}, contract.ActionReconcile, []string{"patch status", "patch", "patch status"}},
		"force-reconcile [Yx2]":              {[]itemOption{withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)}, contract.ActionForceReconcile, []string{"patch status", "patch status", "patch"}},
		"a new generation [Yx2]":             {[]itemOption{withFinishedRun(phases.Succeeded), withNewGeneration}, contract.ActionReconcile, []string{"patch status", "patch status"}},
		"an operation [Yx2]":                 {[]itemOption{withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ReconcileOperation)}, contract.ActionReconcile, []string{"patch status", "patch", "patch status"}},
		"a deletion [Yx2]":                   {[]itemOption{withFinishedRun(phases.Succeeded), withProviderStatus, withDeletion}, contract.ActionDelete, []string{"patch status", "patch"}},
		"a force-reconcile annotation [Yx2]": {[]itemOption{withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)}, contract.ActionForceReconcile, []string{"patch status", "patch status", "patch"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(append(test.changes, withPause)...), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
			before := w.getItem()
			for range 3 {
				w.runAttempt()
			}
			w.expectRequests("patch status")
			w.expectCalls()
			w.expectPaused(true)
			if got := fmt.Sprint(w.hooks.Types()[:2]); got != "[Start DuringResponsibilityCheck]" || len(w.hooks.Types()) != 6 {
				t.Errorf("the hooks %v were called", w.hooks.Types())
			}
			after := w.getItem()
			after.ResourceVersion, after.Status.Conditions = before.ResourceVersion, before.Status.Conditions
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("more than the condition was written (-before +after):\n%s", diff)
			}
			w.updateItem(withoutPause)
			w.hooks.SetHookAnswer("hook", extension.ShouldReconcileHook, nil)
			w.reconcile()
			w.expectCalls(test.then)
			w.expectRequests(test.sent...)
			if w.getItem() != nil {
				w.expectPaused(false)
			}
		})
	}
}

func TestPauseAllowsRunsInProgress(t *testing.T) {
	t.Run("a pause of an item with nothing to do writes nothing, and hooks cannot force a run [Yx2]", func(t *testing.T) {
		for _, c := range []itemOption{withFinishedRun(phases.Succeeded), withFinishedJob("1", phases.Succeeded)} {
			w := newTestEnv(t, newItems(c, withPause), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
			w.runAttempt()
			w.expectRequests()
			w.expectCalls()
			w.expectPaused(false)
			w.updateItem(withoutPause)
			w.reconcile()
			w.expectCalls(contract.ActionReconcile)
		}
	})
	t.Run("a pause keeps the error of a hook, because no hook runs [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withBackgroundCondition("Unknown", "HookFailed"), withPause))
		w.runAttempt()
		w.expectRequests()
	})
	t.Run("a pause allows a run in progress with its waits and retries [Yx2]", func(t *testing.T) {
		for _, c := range []itemOption{withRun(0), withRunningJob("1", 0)} {
			w := newTestEnv(t, newItems(c, withPause), withHooks())
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnWaitFor("a door", time.Second), landscapertest.SetPhase(phases.Progressing), landscapertest.ReturnError(errBoom))
			for range 4 {
				w.runAttempt()
			}
			w.expectCalls(contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile)
			w.expectPaused(false)
			if s := w.getItem().Status; s.Phase != phases.Succeeded {
				t.Errorf("phase = %q, want %q", s.Phase, phases.Succeeded)
			}
		}
	})
	t.Run("a pause allows a background run that waits [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withBackgroundCondition("True", "Waiting"), withPause))
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		w.expectPaused(false)
	})
	t.Run("a pause allows an abort [Yx2]", func(t *testing.T) {
		for _, c := range []itemOption{withRun(0), withRunningJob("1", 0)} {
			w := newTestEnv(t, newItems(c, withOperation(contract.AbortOperation), withNewGeneration, withPause))
			w.runAttempt()
			w.expectCalls(contract.ActionAbort)
			if s := w.getItem().Status; s.Phase != phases.Failed {
				t.Errorf("phase = %q, want %q", s.Phase, phases.Failed)
			}
		}
	})
}

func TestPauseDuringRun(t *testing.T) {
	t.Run("a pause during a run shows the next run that is held back [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(0), withNewGeneration, withPause))
		if w.runAttempt().Queue.RequeueAfter != 1 {
			t.Error("no reconcile follows immediately")
		}
		w.expectCalls(contract.ActionReconcile)
		w.expectPaused(false)
		if s := w.getItem().Status; s.Phase != phases.Succeeded || s.ObservedGeneration != 1 {
			t.Errorf("phase %s, generation %d: want the old run to end", s.Phase, s.ObservedGeneration)
		}
		if ended := w.runAttempt(); ended.Queue.RequeueAfter != 0 {
			t.Errorf("the pause holds back the run, but the requeue is %s", ended.Queue.RequeueAfter)
		}
		w.expectPaused(true)
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("a pause holds back the deletion during a job, and the job ends at its deadline without a call [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRunningJob("1", 0), withProviderStatus, withDeletion, withPause))
		ended := w.runAttempt()
		w.expectPaused(true)
		w.expectCalls()
		if want := contract.DefaultTimeout; ended.Queue.RequeueAfter != want {
			t.Errorf("got the requeue %s, want it at the deadline, in %s", ended.Queue.RequeueAfter, want)
		}
		w.clock.Step(contract.DefaultTimeout)
		w.runAttempt()
		w.expectCalls()
		s := w.getItem().Status
		if s.Phase != phases.DeleteFailed || s.JobIDFinished != "1" || s.LastError == nil {
			t.Errorf("phase %s, finished %q, error %v", s.Phase, s.JobIDFinished, s.LastError)
		}
	})
	t.Run("a background run starts after the condition of the pause is removed [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation), withPause))
		w.runAttempt()
		w.expectPaused(true)
		w.updateItem(withoutPause)
		w.fake.QueueAnswers(contract.ActionForceReconcile, func(_ context.Context, in landscapertest.Input) error {
			w.expectPaused(false)
			return nil
		})
		w.runAttempt()
		w.expectCalls(contract.ActionForceReconcile)
	})
}
