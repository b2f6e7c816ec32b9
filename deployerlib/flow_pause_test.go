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

// paused adds the pause annotation to the item.
func paused(di *lsv1alpha1.DeployItem) { di.Annotations[contract.PausedAnnotation] = "true" }

// unpaused removes the pause annotation from the item.
func unpaused(di *lsv1alpha1.DeployItem) { delete(di.Annotations, contract.PausedAnnotation) }

// moved increments the generation of the item.
func moved(di *lsv1alpha1.DeployItem) { di.Generation++ }

// wantPaused checks whether the condition Paused is true.
func (w *world) wantPaused(want bool) {
	w.t.Helper()
	c := contract.GetCondition(w.stored().Status.Conditions, contract.ConditionPaused)
	if got := c != nil && c.Status == lsv1alpha1.ConditionTrue; got != want {
		w.t.Errorf("got the condition Paused %+v, want it to exist: %t", c, want)
	}
}

func TestPauseHoldsBack(t *testing.T) {
	tests := map[string]struct {
		changes []change
		then    contract.Action
		sent    []string // the requests that are sent after the end of the pause
	}{
		"a job [Yx2]":                        {[]change{finishedJob("1", phases.Succeeded), job("2")}, contract.ActionReconcile, []string{"patch status", "patch status"}},
		"a job that deletes [Yx2]":           {[]change{finishedJob("1", phases.Succeeded), known, job("2"), deleted}, contract.ActionDelete, []string{"patch status", "patch"}},
		"test-reconcile [Yx2]":               {[]change{finishedJob("1", phases.Succeeded), operation(lsv1alpha1.TestReconcileOperation)}, contract.ActionReconcile, []string{"patch status", "patch", "patch status"}},
		"force-reconcile [Yx2]":              {[]change{finishedJob("1", phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)}, contract.ActionForceReconcile, []string{"patch status", "patch status", "patch"}},
		"a new generation [Yx2]":             {[]change{finished(phases.Succeeded), moved}, contract.ActionReconcile, []string{"patch status", "patch status"}},
		"an operation [Yx2]":                 {[]change{finished(phases.Succeeded), operation(lsv1alpha1.ReconcileOperation)}, contract.ActionReconcile, []string{"patch status", "patch", "patch status"}},
		"a deletion [Yx2]":                   {[]change{finished(phases.Succeeded), known, deleted}, contract.ActionDelete, []string{"patch status", "patch"}},
		"a force-reconcile annotation [Yx2]": {[]change{finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)}, contract.ActionForceReconcile, []string{"patch status", "patch status", "patch"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, items(append(test.changes, paused)...), withHooks())
			w.on(extension.ShouldReconcileHook, result(false, 0), nil)
			before := w.stored()
			for range 3 {
				w.pass()
			}
			w.wantSent("patch status")
			w.wantCalls()
			w.wantPaused(true)
			if got := fmt.Sprint(w.hooks.Types()[:2]); got != "[Start DuringResponsibilityCheck]" || len(w.hooks.Types()) != 6 {
				t.Errorf("the hooks %v were called", w.hooks.Types())
			}
			after := w.stored()
			after.ResourceVersion, after.Status.Conditions = before.ResourceVersion, before.Status.Conditions
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("more than the condition was written (-before +after):\n%s", diff)
			}
			w.update(unpaused)
			w.hooks.On("hook", extension.ShouldReconcileHook, nil)
			w.reconcile()
			w.wantCalls(test.then)
			w.wantSent(test.sent...)
			if w.stored() != nil {
				w.wantPaused(false)
			}
		})
	}
}

func TestPauseAllowsRunsInProgress(t *testing.T) {
	t.Run("a pause of an item with nothing to do writes nothing, and hooks cannot force a run [Yx2]", func(t *testing.T) {
		for _, c := range []change{finished(phases.Succeeded), finishedJob("1", phases.Succeeded)} {
			w := newWorld(t, items(c, paused), withHooks())
			w.on(extension.ShouldReconcileHook, result(false, 0), nil)
			w.pass()
			w.wantSent()
			w.wantCalls()
			w.wantPaused(false)
			w.update(unpaused)
			w.reconcile()
			w.wantCalls(contract.ActionReconcile)
		}
	})
	t.Run("a pause keeps the error of a hook, because no hook runs [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), shows("Unknown", "HookFailed"), paused))
		w.pass()
		w.wantSent()
	})
	t.Run("a pause allows a run in progress with its waits and retries [Yx2]", func(t *testing.T) {
		for _, c := range []change{running(0), runningJob("1", 0)} {
			w := newWorld(t, items(c, paused), withHooks())
			w.fake.On(contract.ActionReconcile, landscapertest.Wait("a door", time.Second), landscapertest.Phase(phases.Progressing), landscapertest.Fail(errBoom))
			for range 4 {
				w.pass()
			}
			w.wantCalls(contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile)
			w.wantPaused(false)
			if s := w.stored().Status; s.Phase != phases.Succeeded {
				t.Errorf("phase = %q, want %q", s.Phase, phases.Succeeded)
			}
		}
	})
	t.Run("a pause allows a background run that waits [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), shows("True", "Waiting"), paused))
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		w.wantPaused(false)
	})
	t.Run("a pause allows an abort [Yx2]", func(t *testing.T) {
		for _, c := range []change{running(0), runningJob("1", 0)} {
			w := newWorld(t, items(c, operation(contract.AbortOperation), moved, paused))
			w.pass()
			w.wantCalls(contract.ActionAbort)
			if s := w.stored().Status; s.Phase != phases.Failed {
				t.Errorf("phase = %q, want %q", s.Phase, phases.Failed)
			}
		}
	})
}

func TestPauseDuringRun(t *testing.T) {
	t.Run("a pause during a run shows the next run that is held back [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(running(0), moved, paused))
		if w.pass().Queue.RequeueAfter != 1 {
			t.Error("no reconcile follows immediately")
		}
		w.wantCalls(contract.ActionReconcile)
		w.wantPaused(false)
		if s := w.stored().Status; s.Phase != phases.Succeeded || s.ObservedGeneration != 1 {
			t.Errorf("phase %s, generation %d: want the old run to end", s.Phase, s.ObservedGeneration)
		}
		if ended := w.pass(); ended.Queue.RequeueAfter != 0 {
			t.Errorf("the pause holds back the run, but the requeue is %s", ended.Queue.RequeueAfter)
		}
		w.wantPaused(true)
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("a pause holds back the deletion during a job, and the job ends at its deadline without a call [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(runningJob("1", 0), known, deleted, paused))
		ended := w.pass()
		w.wantPaused(true)
		w.wantCalls()
		if want := contract.DefaultTimeout; ended.Queue.RequeueAfter != want {
			t.Errorf("got the requeue %s, want it at the deadline, in %s", ended.Queue.RequeueAfter, want)
		}
		w.clock.Step(contract.DefaultTimeout)
		w.pass()
		w.wantCalls()
		s := w.stored().Status
		if s.Phase != phases.DeleteFailed || s.JobIDFinished != "1" || s.LastError == nil {
			t.Errorf("phase %s, finished %q, error %v", s.Phase, s.JobIDFinished, s.LastError)
		}
	})
	t.Run("a background run starts after the condition of the pause is removed [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation), paused))
		w.pass()
		w.wantPaused(true)
		w.update(unpaused)
		w.fake.On(contract.ActionForceReconcile, func(_ context.Context, in landscapertest.Input) error {
			w.wantPaused(false)
			return nil
		})
		w.pass()
		w.wantCalls(contract.ActionForceReconcile)
	})
}
