// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// reconcileUntil reconciles the item as often as the controller would in the given time span of the fake clock: after
// each requested delay, and immediately after each event. It returns the number of reconciles.
func (w *testEnv) reconcileUntil(span time.Duration) int {
	w.t.Helper()
	pops, end := 0, w.clock.Now().Add(span)
	for {
		res := w.reconcile()
		pops++
		if pops > 1000 {
			w.t.Fatal("the item is reconciled again without a delay")
		}
		if di := w.getItem(); di != nil && w.HandleEvent(di) {
			continue
		}
		next := w.clock.Now().Add(res.RequeueAfter)
		if res.RequeueAfter <= 0 || next.After(end) {
			w.clock.SetTime(end)
			return pops
		}
		w.clock.SetTime(next)
	}
}

func TestReconcilePace(t *testing.T) {
	t.Run("a failing item makes at most 6 calls in 10 s", func(t *testing.T) {
		for _, changes := range [][]itemOption{{withJob("1")}, {withOperation(lsv1alpha1.ReconcileOperation)}} {
			w := newTestEnv(t, newItems(changes...))
			n := 0
			w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				n++
				return fmt.Errorf("failure %d", n) // a different message each time, so that each failure is written
			})
			w.reconcileUntil(10 * time.Second)
			if n < 3 || n > 6 {
				t.Errorf("%d calls in 10 s", n)
			}
		}
	})
	t.Run("the writes of a waiting item do not change its pace", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			n++
			return deployerlib.WaitFor(time.Duration(n).String(), 30*time.Second)
		})
		w.reconcileUntil(5 * time.Minute)
		if n < 9 || n > 12 {
			t.Errorf("%d calls in 5 min, want one per 30 s", n)
		}
	})
	t.Run("waits between failures do not reset the backoff", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.fake.SetDefaultAnswer(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if n++; n%2 == 0 {
				return deployerlib.WaitFor("x", time.Second)
			}
			return errBoom
		})
		w.reconcileUntil(time.Minute)
		if n > 14 {
			t.Errorf("%d calls in a minute: the backoff does not grow", n)
		}
	})
	t.Run("a hook that always forces a run does not cause a loop", func(t *testing.T) {
		for _, changes := range [][]itemOption{{withFinishedJob("1", phases.Succeeded)}, {withFinishedRun(phases.Succeeded)}} {
			w := newTestEnv(t, newItems(changes...), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, time.Minute), nil)
			w.reconcileUntil(10 * time.Minute)
			if n := len(w.listActions()); n < 9 || n > 12 {
				t.Errorf("%d runs in 10 min, want one per minute", n)
			}
		}
	})
	t.Run("immediate requeues are slowed down after the ninth [L20]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), withHooks(extension.EndHook, extension.AfterResponsibilityCheckHook))
		w.setHookResult(extension.AfterResponsibilityCheckHook, &extension.HookResult{ReconcileResult: reconcile.Result{Requeue: true}}, nil)
		for i := range 12 {
			got := w.reconcile().RequeueAfter
			want := []time.Duration{9: 100 * time.Millisecond, 10: 200 * time.Millisecond, 11: 400 * time.Millisecond}[i]
			if got != max(want, 1) {
				t.Errorf("requeue %d: %s, want %s", i+1, got, max(want, 1))
			}
			w.clock.Step(got)
		}
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} })
		if got := w.reconcile().RequeueAfter; got != 1 {
			t.Errorf("after a change of the item: got the delay %s, want none", got)
		}
	})
	t.Run("an early reconcile does nothing, and a trigger or a change ends the wait", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnWaitFor("x", time.Minute))
		w.reconcile()
		if res := w.reconcile(); res.RequeueAfter != time.Minute || len(w.listActions()) != 1 {
			t.Errorf("after a reconcile that was too early: requeue %s, calls %v", res.RequeueAfter, w.listActions())
		}
		w.Trigger(key)
		w.reconcile()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
		w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }))
		w.reconcile()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a trigger does not force a run of a finished item", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)))
		w.Trigger(key)
		w.reconcile()
		w.expectCalls()
	})
}

func TestPriorities(t *testing.T) {
	tests := map[string]struct {
		objects []client.Object
		answer  landscapertest.Answer
		want    int
	}{
		"a job that progresses":         {newItems(withJob("1")), landscapertest.SetPhase(phases.Progressing), 0},
		"a deletion that progresses":    {newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion), landscapertest.SetPhase(phases.Progressing), 100},
		"a deletion that fails":         {newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion), landscapertest.ReturnError(errBoom), 0},
		"the operation force-reconcile": {newItems(withJob("1"), withOperation(lsv1alpha1.ForceReconcileOperation)), landscapertest.SetPhase(phases.Progressing), 0},
		"a background run that fails":   {newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)), landscapertest.ReturnError(errBoom), -50},
		"an item with nothing to do":    {newItems(withFinishedJob("1", phases.Succeeded)), nil, -50},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, test.objects)
			for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile} {
				w.fake.SetDefaultAnswer(action, test.answer)
			}
			got := w.runAttempt().Queue.Priority
			if got == nil || *got != test.want {
				t.Errorf("priority %v, want %d", got, test.want)
			}
		})
	}
}
