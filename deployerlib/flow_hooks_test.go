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

// countReads counts how often the item is read from the cache.
func countReads(n *int) func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
	return func(di *lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem {
		*n++
		return di
	}
}

// setProviderStatus is a hook that writes the provider status in memory.
func setProviderStatus(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
	di.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Hooked"})
	return nil, nil
}

func TestPipelineContainsEachHookTypeOnce(t *testing.T) {
	w := newWorld(t, nil)
	before := map[extension.HookType]string{
		extension.BeforeAbortHook: "abort", extension.BeforeForceReconcileHook: "force-reconcile",
		extension.BeforeDeleteHook: "delete", extension.BeforeReconcileHook: "reconcile",
	}
	wired := w.Wiring()
	for _, point := range extension.Points() {
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
			w := newWorld(t, objectsFor(specific), withHooks())
			w.pass()
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
		for _, hookType := range extension.HookTypes() {
			w := newWorld(t, objectsFor(hookType), withHooks(hookType), func(w *world, _ *deployerlib.DeployerArgs) {
				w.fake.Hook(w.hooks.Hook("second"), hookType)
			})
			w.on(hookType, result(true, 0), nil)
			w.pass()
			if got := w.hooks.Calls(); len(got) != 2 || got[1].Hook != "second" {
				t.Errorf("%s: hooks called: %+v, want both", hookType, w.hooks.Types())
			}
		}
	})
	t.Run("an error keeps later hooks of the type from running and names the hook [Lx1]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks(extension.BeforeReconcileHook), func(w *world, _ *deployerlib.DeployerArgs) {
			w.fake.Hook(w.hooks.Hook("second"), extension.BeforeReconcileHook)
		})
		w.on(extension.BeforeReconcileHook, nil, errBoom)
		ended := w.pass()
		if len(w.hooks.Calls()) != 1 || !strings.Contains(ended.Err.Error(), "BeforeReconcile[0]") {
			t.Errorf("%d hooks ran, error %v", len(w.hooks.Calls()), ended.Err)
		}
	})
	t.Run("an unknown hook type is rejected [Lx2]", func(t *testing.T) {
		fake := landscapertest.NewFake().Hook((&landscapertest.Recorder{}).Hook("x"), "Sometimes")
		_, err := deployerlib.NewEngine(deployerlib.DeployerArgs{Type: testType, Deployer: fake}, deployerlib.Access{})
		if err == nil || !strings.Contains(err.Error(), "Sometimes") {
			t.Errorf("got error %v, want one that names the type", err)
		}
	})
}

func TestResponsibilityHook(t *testing.T) {
	yes, no := result(false, 0), result(true, 0)
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
			w := newWorld(t, append(items(job("1"), withTarget), target(test.env)), withSelector(), withHooks(), func(w *world, _ *deployerlib.DeployerArgs) {
				w.fake.Hook(w.hooks.Hook("second"), extension.DuringResponsibilityCheckHook)
			})
			w.on(extension.DuringResponsibilityCheckHook, test.first, nil)
			w.hooks.On("second", extension.DuringResponsibilityCheckHook, landscapertest.Returns(test.second, nil))
			w.pass()
			if called := len(w.actions()) == 1; called != test.want {
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
				w.wantSent() // [L25]
			} else if !w.fake.Calls(key)[0].HasTarget {
				t.Error("the deployer got no target [L42]")
			}
		})
	}
	t.Run("later hooks get the real target of a claimed item [L42]", func(t *testing.T) {
		w := newWorld(t, append(items(job("1"), withTarget), target("other")), withSelector(), withHooks())
		w.on(extension.DuringResponsibilityCheckHook, yes, nil)
		w.pass()
		for _, call := range w.hooks.Calls()[1:] {
			if call.Target == nil || call.Target.Name != "target" {
				t.Errorf("%s was given target %v", call.Type, call.Target)
			}
		}
	})
	t.Run("a hook cannot claim an item of another type [L43]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "other" }), withHooks())
		w.on(extension.DuringResponsibilityCheckHook, yes, nil)
		w.pass()
		w.wantSent()
		w.wantCalls()
	})
	t.Run("changes of a responsibility hook are dropped if the item belongs to another deployer [L25]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.hooks.On("hook", extension.DuringResponsibilityCheckHook, setProviderStatus)
		w.pass()
		if w.stored().Status.ProviderStatus != nil {
			t.Error("a change was stored that was made before the deployer was responsible")
		}
	})
}

func TestShouldReconcileHook(t *testing.T) {
	yes, no := result(false, time.Hour), result(true, time.Hour)
	tests := map[string]struct {
		objects       []client.Object
		first, second *extension.HookResult
		want          bool
	}{
		"a hook forces a run [L3] [L45]":                                   {items(finished(phases.Succeeded)), yes, nil, true},
		"a hook forces a background run [L45]":                             {items(finishedJob("1", phases.Failed)), yes, nil, true},
		"a hook cannot stop a run that is due [L47]":                       {items(job("1")), no, nil, true},
		"nil forces no run [L4]":                                           {items(finished(phases.Succeeded)), nil, nil, false},
		"a hook that aborts forces no run [L50]":                           {items(finished(phases.Succeeded)), no, nil, false},
		"one hook that forces a run outweighs another that aborts [L50]":   {items(finished(phases.Succeeded)), no, yes, true},
		"a hook cannot force a run of an item without a job [L45]":         {items(annotation(lsv1alpha1.DeployerTypeAnnotation, "x")), yes, nil, false},
		"a hook cannot force a run of an item that is being deleted [L45]": {items(finishedJob("1", phases.Succeeded), deleted), yes, nil, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.objects, withHooks(), func(w *world, _ *deployerlib.DeployerArgs) {
				w.fake.Hook(w.hooks.Hook("second"), extension.ShouldReconcileHook)
			})
			w.on(extension.ShouldReconcileHook, test.first, nil)
			w.hooks.On("second", extension.ShouldReconcileHook, landscapertest.Returns(test.second, nil))
			ended := w.pass()
			if called := len(w.actions()) == 1; called != test.want {
				t.Errorf("the deployer was called: %t, want %t", called, test.want)
			}
			if asked := test.first != nil || test.second != nil; asked && (ended.Result.RequeueAfter != time.Hour || ended.Queue.RequeueAfter != time.Hour) {
				t.Errorf("the wait was lost: result %s, queue %s [L49]", ended.Result.RequeueAfter, ended.Queue.RequeueAfter)
			}
		})
	}
	t.Run("a forced run starts like any other run under the annotation revision [L46]", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Failed)), withHooks())
		w.on(extension.ShouldReconcileHook, yes, nil)
		var seen *lsv1alpha1.DeployItem
		w.fake.On(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			seen = w.stored()
			return nil
		})
		w.pass()
		s := seen.Status
		if s.Phase != phases.Init || !s.LastReconcileTime.Time.Equal(t0) || s.ObservedGeneration != seen.Generation {
			t.Errorf("stored when the deployer ran: %+v", s)
		}
	})
	t.Run("a forced run of a finished job runs in the background [L46]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Failed)), withHooks())
		w.on(extension.ShouldReconcileHook, yes, nil)
		w.fake.On(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
			if s := w.stored().Status; s.Phase != phases.Failed || s.JobIDFinished != "1" {
				t.Errorf("stored while the deployer ran: %+v", s)
			}
			if in.Item.Status.Phase != phases.Init {
				t.Errorf("the deployer received the phase %q", in.Item.Status.Phase)
			}
			return nil
		})
		w.pass()
		if s := w.stored().Status; s.Phase != phases.Failed || !s.LastReconcileTime.Time.Equal(t0) {
			t.Errorf("stored afterwards: phase %q, lastReconcileTime %v", s.Phase, s.LastReconcileTime)
		}
		w.wantSent("patch status")
	})
	t.Run("an earlier abort does not end the reconcile at a later hook type [L48]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.on(extension.ShouldReconcileHook, no, nil)
		w.on(extension.BeforeAnyReconcileHook, result(false, 0), nil)
		w.on(extension.BeforeReconcileHook, result(false, 0), nil)
		w.pass()
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("hooks of later types see the started run [L28]", func(t *testing.T) {
		w := newWorld(t, items(operation(lsv1alpha1.ReconcileOperation)), withHooks(extension.ShouldReconcileHook))
		w.pass()
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
			t.Run("abort at "+string(hookType)+" skips the action of "+string(specific)+", which runs later [L54]", func(t *testing.T) {
				w := newWorld(t, objectsFor(specific), withHooks())
				w.on(hookType, result(true, time.Minute), nil)
				ended := w.pass()
				w.wantCalls()
				if ended.Err != nil || ended.Queue.RequeueAfter != time.Minute {
					t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
				}
				w.on(hookType, nil, nil)
				w.clock.Step(time.Minute)
				w.pass()
				if len(w.actions()) != 1 {
					t.Errorf("calls after the hook no longer aborts: %v", w.actions())
				}
			})
		}
	}
}

func TestHookErrors(t *testing.T) {
	for _, hookType := range extension.HookTypes() {
		unwritten := hookType == extension.StartHook || hookType == extension.DuringResponsibilityCheckHook
		t.Run("an error of a hook at "+string(hookType)+" ends the reconcile with a retry [Lx3]", func(t *testing.T) {
			w := newWorld(t, objectsFor(hookType), withHooks())
			before := w.stored()
			w.on(hookType, nil, errBoom)
			ended := w.pass()
			if ended.Queue.RequeueAfter <= 0 {
				t.Error("no retry was asked for")
			}
			if unwritten {
				if diff := cmp.Diff(before, w.stored()); diff != "" {
					t.Errorf("the item was changed:\n%s", diff)
				}
				return
			}
			e := w.stored().Status.LastError
			if e == nil || !strings.Contains(e.Message, "boom") || !strings.Contains(e.Message, string(hookType)) {
				t.Errorf("lastError is %+v, want one that names the hook", e)
			}
			if len(w.warnings) != 1 {
				t.Errorf("events: %v, want one", w.warnings)
			}
		})
	}
	t.Run("a panic in a hook becomes an error of the item [Lx10]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.hooks.On("hook", extension.BeforeReconcileHook, func(context.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) (*extension.HookResult, error) {
			panic("ouch")
		})
		ended := w.pass()
		if ended.Err == nil || !strings.Contains(w.stored().Status.LastError.Message, "ouch") {
			t.Errorf("error %v, lastError %+v", ended.Err, w.stored().Status.LastError)
		}
	})
	t.Run("a hook that changes the spec fails and names the path [L25]", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.hooks.On("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Spec.Context = "mine"
			return nil, nil
		})
		w.pass()
		if e := w.stored().Status.LastError; e == nil || !strings.Contains(e.Message, "spec.context") && !strings.Contains(e.Message, "/spec/context") {
			t.Errorf("lastError is %+v, want the path", e)
		}
		w.wantCalls()
	})
	t.Run("a hook cannot change phase and lastError", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.hooks.On("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Status.Phase, di.Status.LastError = phases.Progressing, &lsv1alpha1.Error{Message: "mine"}
			return result(true, 0), nil
		})
		w.pass()
		if s := w.stored().Status; s.Phase != phases.Init || s.LastError != nil {
			t.Errorf("phase %q, lastError %+v, want phase Init and no lastError", s.Phase, s.LastError)
		}
	})
	t.Run("changes of a hook to job fields are restored, and changes to metadata are dropped", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.hooks.On("hook", extension.BeforeReconcileHook, func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target) (*extension.HookResult, error) {
			di.Status.JobIDFinished, di.Status.ObservedGeneration, di.Status.Phase = "1", 77, phases.Failed
			di.Labels = map[string]string{"a": "b"}
			return nil, nil
		})
		w.pass()
		di := w.stored()
		if di.Status.Phase != phases.Succeeded || di.Status.ObservedGeneration != 1 || di.Labels["a"] != "" {
			t.Errorf("labels %v, status %+v, want phase Succeeded, observedGeneration 1 and no label", di.Labels, di.Status)
		}
		w.wantCalls(contract.ActionReconcile)
	})
}
