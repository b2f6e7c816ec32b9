// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newReadCounter counts how often the item is read from the cache.
func newReadCounter(n *int) func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return func(di *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
		*n++
		return di
	}
}

// setProviderStatus is a hook that writes the provider status in memory.
func setProviderStatus(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
	di.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Hooked"})
	return nil, nil
}

func TestPipelineContainsEachHookTypeOnce(t *testing.T) {
	w := newTestEnv(t, nil)
	before := map[extension.HookType]string{
		extension.BeforeAbortHook: "abort", extension.BeforeForceReconcileHook: "force-reconcile",
		extension.BeforeDeleteHook: "delete", extension.BeforeReconcileHook: "reconcile",
	}
	wired := w.ListPhasesByHookType()
	for _, point := range extension.AllHookPoints() {
		want := point.Phase
		if action, ok := before[point.Type]; ok {
			want = action // the phase has the name of the action
		}
		got := strings.Join(wired[point.Type], ",")
		if point.Type == extension.BeforeAnyReconcileHook {
			if len(wired[point.Type]) != len(before) { // all four actions run this hook [L51]
				t.Errorf("%s is wired into %s, want each of the four actions", point.Type, got)
			}
		} else if got != want {
			t.Errorf("%s is wired into %q, want %q exactly once", point.Type, got, want)
		}
		delete(wired, point.Type)
	}
	if len(wired) != 0 {
		t.Errorf("wired, but not in the table of hook points: %v", wired)
	}
}

func TestHookOrder(t *testing.T) {
	common := []extension.HookType{
		extension.StartHook, extension.DuringResponsibilityCheckHook, extension.AfterResponsibilityCheckHook,
		extension.ShouldReconcileHook, extension.BeforeAnyReconcileHook,
	}
	for _, specific := range []extension.HookType{
		extension.BeforeAbortHook, extension.BeforeForceReconcileHook, extension.BeforeDeleteHook, extension.BeforeReconcileHook,
	} {
		t.Run(string(specific)+" is the only hook type for its action that runs [L2] [L51] [L52] [L53]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(specific), withHooks())
			w.runAttempt()
			want := append(append([]extension.HookType{}, common...), specific)
			if specific != extension.BeforeAbortHook { // Abort ends the run as failed, so the End hooks do not run
				want = append(want, extension.EndHook)
			}
			if diff := cmp.Diff(want, w.hooks.Types()); diff != "" {
				t.Errorf("hooks (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("all hooks of a type run when the first aborts [L11]", func(t *testing.T) {
		for _, hookType := range extension.AllHookTypes() {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks(hookType), func(w *testEnv, _ *deployerlib.DeployerArgs) {
				w.fake.RegisterHook(w.hooks.NewHook("second"), hookType)
			})
			w.setHookResult(hookType, newHookResult(true, 0), nil)
			w.runAttempt()
			if got := w.hooks.Calls(); len(got) != 2 || got[1].Hook != "second" {
				t.Errorf("%s: hooks called: %+v, want both", hookType, w.hooks.Types())
			}
		}
	})
	t.Run("an error keeps later hooks of the type from running and names the hook [Lx1]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks(extension.BeforeReconcileHook), func(w *testEnv, _ *deployerlib.DeployerArgs) {
			w.fake.RegisterHook(w.hooks.NewHook("second"), extension.BeforeReconcileHook)
		})
		w.setHookResult(extension.BeforeReconcileHook, nil, errBoom)
		ended := w.runAttempt()
		if len(w.hooks.Calls()) != 1 || !strings.Contains(ended.Err.Error(), "BeforeReconcile[0]") {
			t.Errorf("%d hooks ran, error %v", len(w.hooks.Calls()), ended.Err)
		}
	})
	t.Run("an unknown hook type is rejected [Lx2]", func(t *testing.T) {
		fake := landscapertest.NewFake().RegisterHook((&landscapertest.Recorder{}).NewHook("x"), "Sometimes")
		_, err := deployerlib.NewEngine(deployerlib.DeployerArgs{Type: testType, Deployer: fake}, deployerlib.Access{})
		if err == nil || !strings.Contains(err.Error(), "Sometimes") {
			t.Errorf("got error %v, want one that names the type", err)
		}
	})
}

func TestResponsibilityHook(t *testing.T) {
	yes, no := newHookResult(false, 0), newHookResult(true, 0)
	tests := map[string]struct {
		env           string
		first, second *extension.HookResult
		want          bool
	}{
		"a hook claims an item of another environment [L38]":                    {"other", yes, nil, true},
		"a hook refuses an item that the selectors match [L39]":                 {"mine", no, nil, false},
		"nil leaves an item that the selectors match to the check [L40]":        {"mine", nil, nil, true},
		"nil leaves an item that the selectors do not match to the check [L40]": {"other", nil, nil, false},
		"one hook that claims an item outweighs another that refuses it [L41]":  {"mine", no, yes, true},
		"two hooks refuse an item [L41]":                                        {"mine", no, no, false},
		"a refusal counts if the other hook returns nil [L41]":                  {"mine", nil, no, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, append(newItems(withJob("1"), withTarget), newTarget(test.env)), withSelector(), withHooks(), func(w *testEnv, _ *deployerlib.DeployerArgs) {
				w.fake.RegisterHook(w.hooks.NewHook("second"), extension.DuringResponsibilityCheckHook)
			})
			w.setHookResult(extension.DuringResponsibilityCheckHook, test.first, nil)
			w.hooks.SetHookAnswer("second", extension.DuringResponsibilityCheckHook, landscapertest.ReturnResult(test.second, nil))
			w.runAttempt()
			if called := len(w.listActions()) == 1; called != test.want {
				t.Fatalf("the deployer was called: %t, want %t", called, test.want)
			}
			after := false
			for _, hookType := range w.hooks.Types() {
				after = after || hookType == extension.AfterResponsibilityCheckHook
			}
			if after != test.want {
				t.Errorf("AfterResponsibilityCheck ran: %t, want %t [L44]", after, test.want)
			}
			if !test.want {
				w.expectRequests() // [L25]
			} else if !w.fake.ListCalls(key)[0].HasTarget {
				t.Error("the deployer got no target [L42]")
			}
		})
	}
	t.Run("later hooks get the real target of a claimed item [L42]", func(t *testing.T) {
		w := newTestEnv(t, append(newItems(withJob("1"), withTarget), newTarget("other")), withSelector(), withHooks())
		w.setHookResult(extension.DuringResponsibilityCheckHook, yes, nil)
		w.runAttempt()
		for _, call := range w.hooks.Calls()[1:] {
			if call.Target == nil || call.Target.Name != "target" {
				t.Errorf("%s was given target %v", call.Type, call.Target)
			}
		}
	})
	t.Run("a hook cannot claim an item of another type [L43]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "other" }), withHooks())
		w.setHookResult(extension.DuringResponsibilityCheckHook, yes, nil)
		w.runAttempt()
		w.expectRequests()
		w.expectCalls()
	})
	t.Run("changes of a responsibility hook are dropped if the item belongs to another deployer [L25]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.hooks.SetHookAnswer("hook", extension.DuringResponsibilityCheckHook, setProviderStatus)
		w.runAttempt()
		if w.getItem().Status.ProviderStatus != nil {
			t.Error("a change was stored that was made before the deployer was responsible")
		}
	})
}

func TestShouldReconcileHook(t *testing.T) {
	yes, no := newHookResult(false, time.Hour), newHookResult(true, time.Hour)
	tests := map[string]struct {
		objects       []client.Object
		first, second *extension.HookResult
		want          bool
	}{
		"a hook forces a run [L3] [L45]":                                   {newItems(withFinishedRun(phases.Succeeded)), yes, nil, true},
		"a hook forces a background run [L45]":                             {newItems(withFinishedJob("1", phases.Failed)), yes, nil, true},
		"a hook cannot stop a run that is due [L47]":                       {newItems(withJob("1")), no, nil, true},
		"nil forces no run [L4]":                                           {newItems(withFinishedRun(phases.Succeeded)), nil, nil, false},
		"a hook that aborts forces no run [L50]":                           {newItems(withFinishedRun(phases.Succeeded)), no, nil, false},
		"one hook that forces a run outweighs another that aborts [L50]":   {newItems(withFinishedRun(phases.Succeeded)), no, yes, true},
		"a hook cannot force a run of an item without a job [L45]":         {newItems(withAnnotation(lsv1alpha1.DeployerTypeAnnotation, "x")), yes, nil, false},
		"a hook cannot force a run of an item that is being deleted [L45]": {newItems(withFinishedJob("1", phases.Succeeded), withDeletion), yes, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, test.objects, withHooks(), func(w *testEnv, _ *deployerlib.DeployerArgs) {
				w.fake.RegisterHook(w.hooks.NewHook("second"), extension.ShouldReconcileHook)
			})
			w.setHookResult(extension.ShouldReconcileHook, test.first, nil)
			w.hooks.SetHookAnswer("second", extension.ShouldReconcileHook, landscapertest.ReturnResult(test.second, nil))
			ended := w.runAttempt()
			if called := len(w.listActions()) == 1; called != test.want {
				t.Errorf("the deployer was called: %t, want %t", called, test.want)
			}
			if asked := test.first != nil || test.second != nil; asked && (ended.Result.RequeueAfter != time.Hour || ended.Queue.RequeueAfter != time.Hour) {
				t.Errorf("the wait was lost: result %s, queue %s [L49]", ended.Result.RequeueAfter, ended.Queue.RequeueAfter)
			}
		})
	}
	t.Run("a forced run starts like any other run under the annotation revision [L46]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Failed)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, yes, nil)
		var seen *lsv1alpha1.DeployItem
		w.fake.QueueAnswers(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			seen = w.getItem()
			return nil
		})
		w.runAttempt()
		s := seen.Status
		if s.Phase != phases.Init || !s.LastReconcileTime.Time.Equal(t0) || s.ObservedGeneration != seen.Generation {
			t.Errorf("stored when the deployer ran: %+v", s)
		}
	})
	t.Run("a forced run of a finished job runs in the background [L46]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Failed)), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, yes, nil)
		w.fake.QueueAnswers(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			if s := w.getItem().Status; s.Phase != phases.Failed || s.JobIDFinished != "1" {
				t.Errorf("stored while the deployer ran: %+v", s)
			}
			if in.Item.Status.Phase != phases.Init {
				t.Errorf("the deployer received the phase %q", in.Item.Status.Phase)
			}
			return nil
		})
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Failed || !s.LastReconcileTime.Time.Equal(t0) {
			t.Errorf("stored afterwards: phase %q, lastReconcileTime %v", s.Phase, s.LastReconcileTime)
		}
		w.expectRequests("patch status")
	})
	t.Run("an earlier abort does not end the reconcile at a later hook type [L48]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.setHookResult(extension.ShouldReconcileHook, no, nil)
		w.setHookResult(extension.BeforeAnyReconcileHook, newHookResult(false, 0), nil)
		w.setHookResult(extension.BeforeReconcileHook, newHookResult(false, 0), nil)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("hooks of later types see the started run [L28]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withOperation(lsv1alpha1.ReconcileOperation)), withHooks(extension.ShouldReconcileHook))
		w.runAttempt()
		s := w.hooks.Calls()[0].Item.Status
		if s.Phase != phases.Init || s.LastReconcileTime == nil || !s.LastReconcileTime.Time.Equal(t0) {
			t.Errorf("the hook saw phase %q, lastReconcileTime %v", s.Phase, s.LastReconcileTime)
		}
	})
}

func TestBeforeHooksAbort(t *testing.T) {
	for _, specific := range []extension.HookType{
		extension.BeforeAbortHook, extension.BeforeForceReconcileHook, extension.BeforeDeleteHook, extension.BeforeReconcileHook,
	} {
		for _, hookType := range []extension.HookType{specific, extension.BeforeAnyReconcileHook} {
			t.Run("a hook that aborts at "+string(hookType)+" skips the action of "+string(specific)+", which runs in a later reconcile [L54]", func(t *testing.T) {
				w := newTestEnv(t, newObjectsFor(specific), withHooks())
				w.setHookResult(hookType, newHookResult(true, time.Minute), nil)
				ended := w.runAttempt()
				w.expectCalls()
				if ended.Err != nil || ended.Queue.RequeueAfter != time.Minute {
					t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
				}
				w.setHookResult(hookType, nil, nil)
				w.clock.Step(time.Minute)
				w.runAttempt()
				if len(w.listActions()) != 1 {
					t.Errorf("calls after the hook no longer aborts: %v", w.listActions())
				}
			})
		}
	}
}

func TestHookErrors(t *testing.T) {
	for _, hookType := range extension.AllHookTypes() {
		unwritten := hookType == extension.StartHook || hookType == extension.DuringResponsibilityCheckHook
		t.Run("an error of a hook at "+string(hookType)+" ends the reconcile with a retry [Lx3]", func(t *testing.T) {
			w := newTestEnv(t, newObjectsFor(hookType), withHooks())
			before := w.getItem()
			w.setHookResult(hookType, nil, errBoom)
			ended := w.runAttempt()
			if ended.Queue.RequeueAfter <= 0 {
				t.Error("no retry was asked for")
			}
			if unwritten {
				if diff := cmp.Diff(before, w.getItem()); diff != "" {
					t.Errorf("the item was changed:\n%s", diff)
				}
				return
			}
			e := w.getItem().Status.LastError
			if e == nil || !strings.Contains(e.Message, "boom") || !strings.Contains(e.Message, string(hookType)) {
				t.Errorf("lastError is %+v, want one that names the hook", e)
			}
			if len(w.warnings) != 1 {
				t.Errorf("events: %v, want one", w.warnings)
			}
		})
	}
	t.Run("a panic in a hook becomes an error of the item [Lx10]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			panic("ouch")
		})
		ended := w.runAttempt()
		if ended.Err == nil || !strings.Contains(w.getItem().Status.LastError.Message, "ouch") {
			t.Errorf("error %v, lastError %+v", ended.Err, w.getItem().Status.LastError)
		}
	})
	t.Run("a hook that changes the spec fails and names the path [L25]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Spec.Context = "mine"
			return nil, nil
		})
		w.runAttempt()
		if e := w.getItem().Status.LastError; e == nil || !strings.Contains(e.Message, "spec.context") && !strings.Contains(e.Message, "/spec/context") {
			t.Errorf("lastError is %+v, want the path", e)
		}
		w.expectCalls()
	})
	t.Run("a hook cannot change phase and lastError", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Status.Phase, di.Status.LastError = phases.Progressing, &lsv1alpha1.Error{Message: "mine"}
			return newHookResult(true, 0), nil
		})
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Init || s.LastError != nil {
			t.Errorf("phase %q, lastError %+v, want phase Init and no lastError", s.Phase, s.LastError)
		}
	})
	t.Run("changes of a hook to job fields are restored, and changes to metadata are dropped", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.hooks.SetHookAnswer("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Status.JobIDFinished, di.Status.ObservedGeneration, di.Status.Phase = "1", 77, phases.Failed
			di.Labels = map[string]string{"a": "b"}
			return nil, nil
		})
		w.runAttempt()
		di := w.getItem()
		if di.Status.Phase != phases.Succeeded || di.Status.ObservedGeneration != 1 || di.Labels["a"] != "" {
			t.Errorf("labels %v, status %+v, want phase Succeeded, observedGeneration 1 and no label", di.Labels, di.Status)
		}
		w.expectCalls(contract.ActionReconcile)
	})
}
