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

// live reconciles the item as often as the controller would in the given time span of the fake clock: after each
// requested delay, and immediately after each event. It returns the number of reconciles.
func (w *world) live(span time.Duration) int {
	w.t.Helper()
	pops, end := 0, w.clock.Now().Add(span)
	for {
		res := w.reconcile()
		pops++
		if pops > 1000 {
			w.t.Fatal("the item is reconciled again without a delay")
		}
		if di := w.stored(); di != nil && w.Event(di) {
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
		for _, changes := range [][]change{{job("1")}, {operation(lsv1alpha1.ReconcileOperation)}} {
			w := newWorld(t, items(changes...))
			n := 0
			w.fake.Always(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				n++
				return fmt.Errorf("failure %d", n) // a different message each time, so that each failure is written
			})
			w.live(10 * time.Second)
			if n < 3 || n > 6 {
				t.Errorf("%d calls in 10 s", n)
			}
		}
	})
	t.Run("the writes of a waiting item do not change its pace", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fake.Always(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			n++
			return deployerlib.WaitFor(time.Duration(n).String(), 30*time.Second)
		})
		w.live(5 * time.Minute)
		if n < 9 || n > 12 {
			t.Errorf("%d calls in 5 min, want one per 30 s", n)
		}
	})
	t.Run("waits between failures do not reset the backoff", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fake.Always(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if n++; n%2 == 0 {
				return deployerlib.WaitFor("x", time.Second)
			}
			return errBoom
		})
		w.live(time.Minute)
		if n > 14 {
			t.Errorf("%d calls in a minute: the backoff does not grow", n)
		}
	})
	t.Run("a hook that always forces a run does not cause a loop", func(t *testing.T) {
		for _, changes := range [][]change{{finishedJob("1", phases.Succeeded)}, {finished(phases.Succeeded)}} {
			w := newWorld(t, items(changes...), withHooks())
			w.on(extension.ShouldReconcileHook, result(false, time.Minute), nil)
			w.live(10 * time.Minute)
			if n := len(w.actions()); n < 9 || n > 12 {
				t.Errorf("%d runs in 10 min, want one per minute", n)
			}
		}
	})
	t.Run("immediate requeues are slowed down after the ninth [L20]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), withHooks(extension.EndHook, extension.AfterResponsibilityCheckHook))
		w.on(extension.AfterResponsibilityCheckHook, &extension.HookResult{ReconcileResult: reconcile.Result{Requeue: true}}, nil)
		for i := range 12 {
			got := w.reconcile().RequeueAfter
			want := []time.Duration{9: 100 * time.Millisecond, 10: 200 * time.Millisecond, 11: 400 * time.Millisecond}[i]
			if got != max(want, 1) {
				t.Errorf("requeue %d: %s, want %s", i+1, got, max(want, 1))
			}
			w.clock.Step(got)
		}
		w.update(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} })
		if got := w.reconcile().RequeueAfter; got != 1 {
			t.Errorf("after a change of the item: got the delay %s, want none", got)
		}
	})
	t.Run("an early reconcile does nothing, and a trigger or a change ends the wait", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.Always(contract.ActionReconcile, landscapertest.Wait("x", time.Minute))
		w.reconcile()
		if res := w.reconcile(); res.RequeueAfter != time.Minute || len(w.actions()) != 1 {
			t.Errorf("after a reconcile that was too early: requeue %s, calls %v", res.RequeueAfter, w.actions())
		}
		w.Trigger(key)
		w.reconcile()
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
		w.Event(w.update(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }))
		w.reconcile()
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a trigger does not force a run of a finished item", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)))
		w.Trigger(key)
		w.reconcile()
		w.wantCalls()
	})
}

func TestPriorities(t *testing.T) {
	tests := map[string]struct {
		objects []client.Object
		answer  landscapertest.Answer
		want    int
	}{
		"a job that progresses":         {items(job("1")), landscapertest.Phase(phases.Progressing), 0},
		"a deletion that progresses":    {items(finishedJob("1", phases.Succeeded), job("2"), deleted), landscapertest.Phase(phases.Progressing), 100},
		"a deletion that fails":         {items(finishedJob("1", phases.Succeeded), job("2"), deleted), landscapertest.Fail(errBoom), 0},
		"the operation force-reconcile": {items(job("1"), operation(lsv1alpha1.ForceReconcileOperation)), landscapertest.Phase(phases.Progressing), 0},
		"a background run that fails":   {items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)), landscapertest.Fail(errBoom), -50},
		"an item with nothing to do":    {items(finishedJob("1", phases.Succeeded)), nil, -50},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.objects)
			for _, action := range []contract.Action{contract.ActionReconcile, contract.ActionDelete, contract.ActionForceReconcile} {
				w.fake.Always(action, test.answer)
			}
			got := w.pass().Queue.Priority
			if got == nil || *got != test.want {
				t.Errorf("priority %v, want %d", got, test.want)
			}
		})
	}
}
