// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestHookResults(t *testing.T) {
	for _, hookType := range extension.AllHookTypes() {
		want := reconcile.Result{RequeueAfter: time.Hour, Priority: new(7)}
		t.Run("the result of a hook at "+string(hookType)+" is returned [L8] [L9] [L57]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks())
			w.setHookResult(hookType, &extension.HookResult{ReconcileResult: want}, nil)
			ended := w.runAttempt()
			if diff := cmp.Diff(want, ended.Result); diff != "" || ended.Err != nil {
				t.Errorf("result (-want +got), error %v:\n%s", ended.Err, diff)
			}
			if ended.Queue.RequeueAfter != time.Hour {
				t.Errorf("got the requeue %s, want 1h", ended.Queue.RequeueAfter)
			}
		})
		t.Run("the result of a hook that aborts at "+string(hookType)+" is returned [L10]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks())
			w.setHookResult(hookType, &extension.HookResult{ReconcileResult: want, AbortReconcile: true}, nil)
			ended := w.runAttempt()
			if diff := cmp.Diff(want, ended.Result); diff != "" || ended.Err != nil {
				t.Errorf("result (-want +got), error %v:\n%s", ended.Err, diff)
			}
			goesOn := hookType == extension.EndHook || hookType == extension.ShouldReconcileHook // [L47] [L56]
			if called := len(w.listActions()) > 0; called != goesOn {
				t.Errorf("the deployer was called: %t, want %t", called, goesOn)
			}
		})
		t.Run("all results are ignored when a hook at "+string(hookType)+" fails [L12]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks())
			for _, earlier := range extension.AllHookTypes() {
				w.setHookResult(earlier, newHookResult(false, time.Minute), nil)
			}
			w.setHookResult(hookType, newHookResult(false, time.Hour), errBoom)
			ended := w.runAttempt()
			if ended.Err == nil || ended.Result != (reconcile.Result{}) {
				t.Errorf("got %+v and error %v, want nothing but an error", ended.Result, ended.Err)
			}
		})
	}
}

func TestResultsAreMerged(t *testing.T) {
	tests := map[string]struct {
		early, late *extension.HookResult
		want        reconcile.Result
		immediate   bool
	}{
		"the shorter RequeueAfter precedes the longer one [L19]":      {newHookResult(false, time.Hour), newHookResult(false, time.Minute), reconcile.Result{RequeueAfter: time.Minute}, false},
		"Requeue precedes a RequeueAfter of another type [L20] [L21]": {newRequeueResult(0), newHookResult(false, time.Minute), reconcile.Result{Requeue: true}, true},
		"Requeue of a later type precedes a RequeueAfter [L21]":       {newHookResult(false, time.Minute), newRequeueResult(0), reconcile.Result{Requeue: true}, true},
		"Requeue precedes its own RequeueAfter [L22]":                 {newRequeueResult(time.Hour), nil, reconcile.Result{Requeue: true}, true},
		"nil does not change the result":                              {nil, newHookResult(false, time.Minute), reconcile.Result{RequeueAfter: time.Minute}, false},
		"a negative RequeueAfter has no effect":                       {newHookResult(false, -time.Hour), nil, reconcile.Result{}, false},
		"the result is empty without a result of a hook":              {nil, nil, reconcile.Result{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withJob("2")), withHooks())
			w.setHookResult(extension.AfterResponsibilityCheckHook, test.early, nil)
			w.setHookResult(extension.EndHook, test.late, nil)
			ended := w.runAttempt()
			if diff := cmp.Diff(test.want, ended.Result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if immediate := ended.Queue.RequeueAfter == 1; immediate != test.immediate {
				t.Errorf("got the requeue %s, want it immediately: %t", ended.Queue.RequeueAfter, test.immediate)
			}
		})
	}
}

func newRequeueResult(after time.Duration) *extension.HookResult {
	return &extension.HookResult{ReconcileResult: reconcile.Result{Requeue: true, RequeueAfter: after}}
}

func TestRequeueIsImmediate(t *testing.T) {
	t.Run("Requeue is immediate regardless of how a reconcile ends [L20] [L22]", func(t *testing.T) {
		for name, objects := range map[string][]client.Object{
			"nothing to do": newItems(withFinishedJob("1", phases.Succeeded)), "run": newItems(withJob("1")), "gone": nil,
		} {
			w := newTestEnv(t, objects, withHooks(extension.StartHook))
			w.setHookResult(extension.StartHook, newRequeueResult(time.Hour), nil)
			want := time.Duration(1)
			if name == "gone" { // [L23]: nothing is requeued
				want = 0
			}
			if got := w.runAttempt().Queue.RequeueAfter; got != want {
				t.Errorf("%s: got the requeue %s, want %s", name, got, want)
			}
		}
	})
}

func TestStartHook(t *testing.T) {
	t.Run("a Start hook receives neither item nor target [L36]", func(t *testing.T) {
		for name, objects := range map[string][]client.Object{"there": append(newItems(withJob("1"), withTarget), newTarget("mine")), "gone": nil} {
			w := newTestEnv(t, objects, withHooks(extension.StartHook))
			w.runAttempt()
			calls := w.hooks.Calls()
			if len(calls) != 1 || calls[0].Item != nil || calls[0].Target != nil || calls[0].Type != extension.StartHook {
				t.Errorf("%s: Start hook was called with %+v", name, calls)
			}
		}
	})
	t.Run("a Start hook ends the reconcile before the item is read [L37]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.setHookResult(extension.StartHook, newHookResult(true, 0), nil)
		read := 0
		w.transformCached = newReadCounter(&read)
		w.runAttempt()
		if read != 0 {
			t.Errorf("the item was read %d times", read)
		}
		w.expectRequests()
		w.expectCalls()
	})
}

func TestEndHook(t *testing.T) {
	progressing := landscapertest.SetPhase(phases.Progressing)
	tests := map[string]struct {
		answer landscapertest.Answer
		want   bool
	}{
		"End hooks run after a success [L55]":               {landscapertest.ReturnNil(), true},
		"End hooks run after the phase Progressing [L55]":   {progressing, true},
		"End hooks do not run after an error [L56]":         {landscapertest.ReturnError(errBoom), false},
		"End hooks do not run after WaitFor [L56]":          {landscapertest.ReturnWaitFor("x", 0), false},
		"End hooks do not run after a panic [L56] [Lx10]":   {landscapertest.Panic("x"), false},
		"End hooks do not run after the phase Failed [L56]": {landscapertest.SetPhase(phases.Failed), false},
		"End hooks do not run after an unknown phase [L56]": {landscapertest.SetPhase("Strange"), false},
		"End hooks run after the phase Succeeded [L55]":     {landscapertest.SetPhase(phases.Succeeded), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(withJob("1")), withHooks(extension.EndHook))
			w.fake.QueueAnswers(contract.ActionReconcile, test.answer)
			w.runAttempt()
			if ran := len(w.hooks.Calls()) == 1; ran != test.want {
				t.Errorf("End hook ran: %t, want %t", ran, test.want)
			}
		})
	}
	t.Run("changes of an End hook are part of the final write [L55]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks(extension.EndHook))
		w.hooks.SetHookAnswer("hook", extension.EndHook, setProviderStatus)
		w.runAttempt()
		if w.getItem().Status.ProviderStatus == nil {
			t.Error("the provider status of the End hook was not stored")
		}
		w.expectRequests("patch status", "patch status")
	})
	t.Run("an error of an End hook keeps the finalizer of a deleted item [L55]", func(t *testing.T) {
		w := newTestEnv(t, newObjectsFor(extension.BeforeDeleteHook), withHooks(extension.EndHook))
		w.setHookResult(extension.EndHook, nil, errBoom)
		w.runAttempt()
		if w.getItem() == nil {
			t.Fatal("the item is gone although an End hook failed")
		}
		w.setHookResult(extension.EndHook, nil, nil)
		w.runAttempt()
		if w.getItem() != nil {
			t.Error("the item is still there")
		}
		w.expectCalls(contract.ActionDelete, contract.ActionDelete)
	})
}
