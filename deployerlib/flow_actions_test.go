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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// TestExactlyOneAction tests all combinations of operation, deletion, phase, job and hooks that force a run [L30].
func TestExactlyOneAction(t *testing.T) {
	operations := []lsv1alpha1.Operation{"", lsv1alpha1.ReconcileOperation, contract.AbortOperation, lsv1alpha1.ForceReconcileOperation, lsv1alpha1.TestReconcileOperation, "strange"}
	states := []lsv1alpha1.DeployItemPhase{"", phases.Init, phases.Progressing, phases.Deleting, phases.InitDelete, phases.Succeeded, phases.Failed, phases.DeleteFailed, "Strange"}
	jobs := map[string]change{
		"none": func(*lsv1alpha1.DeployItem) {}, "open": job("2"),
		"done": func(di *lsv1alpha1.DeployItem) { job("1")(di); di.Status.JobIDFinished = "1" },
	}
	for _, op := range operations {
		for _, phase := range states {
			for jobName, jobChange := range jobs {
				for _, deleting := range []bool{false, true} {
					for _, forced := range []bool{false, true} {
						name := fmt.Sprintf("op %q phase %q job %s deleting %t forced %t", op, phase, jobName, deleting, forced)
						oneAction(t, name, forced, func(di *lsv1alpha1.DeployItem) {
							finished(phase)(di)
							jobChange(di)
							di.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Some"})
							if op != "" {
								operation(op)(di)
							}
							if deleting {
								deleted(di)
							}
						})
					}
				}
			}
		}
	}
}

// oneAction makes one attempt and checks that it calls at most one action. It also checks other rules that apply to
// every attempt. If the parameter `forced` is true, a hook forces a run.
func oneAction(t *testing.T, name string, forced bool, c change) {
	t.Helper()
	w := newWorld(t, items(c), withHooks())
	if forced {
		w.on(extension.ShouldReconcileHook, result(false, 0), nil)
	}
	before := w.stored()
	w.pass()
	calls := w.fake.Calls(key)
	if len(calls) > 1 {
		t.Errorf("%s: calls %v", name, w.actions())
		return
	}
	specific := 0
	for _, hookType := range w.hooks.Types() {
		if strings.HasPrefix(string(hookType), "Before") && hookType != extension.BeforeAnyReconcileHook {
			specific++
		}
	}
	if specific != len(calls) { // each call has exactly one specific Before hook [L52]
		t.Errorf("%s: %d Before hooks for %d calls", name, specific, len(calls))
	}
	after := w.stored()
	if after == nil {
		return
	}
	s := after.Status
	if len(calls) == 0 && forced && s.Phase != before.Status.Phase && !contract.IsFinal(s.Phase) {
		t.Errorf("%s: phase went from %q to %q without a call", name, before.Status.Phase, s.Phase)
	}
	if s.JobID != "" && s.JobID == s.JobIDFinished && before.Status.JobID != before.Status.JobIDFinished && !contract.IsFinal(s.Phase) {
		t.Errorf("%s: job finished with phase %q [C10]", name, s.Phase)
	}
}

func TestActionPrecedence(t *testing.T) {
	abort, force := operation(contract.AbortOperation), operation(lsv1alpha1.ForceReconcileOperation)
	tests := map[string]struct {
		changes []change
		want    contract.Action
	}{
		"abort precedes delete [L35]":                {[]change{running(0), abort, deleted}, contract.ActionAbort},
		"force-reconcile precedes delete [L35]":      {[]change{running(0), force, deleted}, contract.ActionForceReconcile},
		"delete precedes reconcile [L33] [L35]":      {[]change{running(0), deleted}, contract.ActionDelete},
		"abort [L31]":                                {[]change{running(0), abort}, contract.ActionAbort},
		"force-reconcile [L32]":                      {[]change{running(0), force}, contract.ActionForceReconcile},
		"reconcile is the default [L34]":             {[]change{running(0)}, contract.ActionReconcile},
		"abort of a job [L31]":                       {[]change{runningJob("1", 0), abort}, contract.ActionAbort},
		"force-reconcile of an unfinished job [L32]": {[]change{job("1"), force}, contract.ActionForceReconcile},
		"force-reconcile of a finished item [Lx7]":   {[]change{finished(phases.Succeeded), force}, contract.ActionForceReconcile},
		"deletion without a new generation [Lx7]":    {[]change{finished(phases.Succeeded), deleted}, contract.ActionDelete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, items(test.changes...))
			w.pass()
			w.wantCalls(test.want)
		})
	}
	t.Run("delete follows a force-reconcile and an abort [L35]", func(t *testing.T) {
		for _, first := range []change{abort, force} {
			w := newWorld(t, items(running(-2*time.Minute), first, deleted)) // the run began before the deletion
			w.pass()
			for range 3 {
				if w.stored() != nil {
					w.pass()
				}
			}
			if w.stored() != nil || w.fake.Count(key, contract.ActionDelete) != 1 {
				t.Errorf("calls %v, item gone: %t", w.actions(), w.stored() == nil)
			}
		}
	})
	t.Run("an abort that comes too late is only removed [Lx7]", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Succeeded), abort, annotation(contract.AbortTimestampAnnotation, t0.Format(time.RFC3339))))
		w.pass()
		w.wantCalls()
		if len(w.stored().Annotations) != 0 {
			t.Errorf("annotations %v", w.stored().Annotations)
		}
		w.wantSent("patch")
	})
}

func TestDefaultFlow(t *testing.T) {
	t.Run("a deleted item causes neither an error nor a requeue [L23]", func(t *testing.T) {
		w := newWorld(t, nil, withHooks())
		ended := w.pass()
		if ended.Err != nil || ended.Queue.RequeueAfter != 0 || len(w.hooks.Types()) != 1 {
			t.Errorf("got %+v after hooks %v", ended, w.hooks.Types())
		}
		if w.Known() != 0 {
			t.Error("the item is still remembered")
		}
	})
	t.Run("the deployer is responsible for an item without a target, and for each item without selectors [L24]", func(t *testing.T) {
		for _, s := range []setup{withSelector(), withHooks()} {
			w := newWorld(t, items(job("1")), s)
			w.pass()
			w.wantCalls(contract.ActionReconcile)
		}
		w := newWorld(t, append(items(job("1"), withTarget), target("any")))
		w.pass()
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("items of other deployers are never written [C1] [C2] [L24] [L25]", func(t *testing.T) {
		for name, objects := range map[string][]client.Object{
			"type":           items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "other" }),
			"target":         append(items(job("1"), withTarget), target("other")),
			"missing target": items(job("1"), withTarget),
		} {
			w := newWorld(t, objects, withSelector())
			w.pass()
			if sent := w.sent(); len(sent) != 0 {
				t.Errorf("%s: requests %v", name, sent)
			}
		}
	})
	t.Run("the deployer is responsible for items with matching labels only", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withArgs(func(args *deployerlib.DeployerArgs) {
			selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"shard": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			args.ItemSelector = selector
		}))
		w.pass()
		w.wantCalls()
		w.update(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"shard": "1"} })
		w.pass()
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("annotations are removed after the start of the run is stored [L26] [C3] [C5]", func(t *testing.T) {
		w := newWorld(t, items(operation(lsv1alpha1.ReconcileOperation), annotation(lsv1alpha1.ReconcileTimestampAnnotation, t0.Format(time.RFC3339))))
		w.fake.On(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if di := w.stored(); len(di.Annotations) != 0 || !contract.HasOurFinalizer(di) {
				t.Errorf("when the deployer ran: annotations %v, finalizers %v [Lx6]", di.Annotations, di.Finalizers)
			}
			return nil
		})
		w.pass()
		w.wantSent("patch status", "patch", "patch status")
	})
	t.Run("a changed generation starts a run [L27] [C7]", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Generation = 5 }))
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		if got := w.stored().Status.ObservedGeneration; got != 5 {
			t.Errorf("observedGeneration %d", got)
		}
	})
	t.Run("items with a final phase do not run, others do [L4] [L29] [C8]", func(t *testing.T) {
		for phase, want := range map[lsv1alpha1.DeployItemPhase]bool{
			phases.Succeeded: false, phases.Failed: false, "Aborted": false,
			phases.Init: true, phases.Progressing: true, phases.Deleting: true, phases.Completing: true, "": true, "Strange": true,
		} {
			w := newWorld(t, items(finished(phase), func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = at(0) }))
			w.pass()
			if called := len(w.actions()) == 1; called != want {
				t.Errorf("phase %q: called %t, want %t", phase, called, want)
			}
		}
	})
	t.Run("the deployer receives the phase Init or InitDelete, regardless of the stored phase [C9]", func(t *testing.T) {
		for _, changes := range [][]change{{running(0)}, {runningJob("1", 0)}, {runningJob("1", 0), deleted}} {
			w := newWorld(t, items(changes...))
			w.pass()
			call := w.fake.Calls(key)[0]
			want := phases.Init
			if call.Action == contract.ActionDelete {
				want = phases.InitDelete
			}
			if call.InitialPhase != want || call.StoredPhase != phases.Progressing {
				t.Errorf("%s: handed %q, stored %q", call.Action, call.InitialPhase, call.StoredPhase)
			}
		}
	})
	t.Run("the status names the deployer [C11]", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.pass()
		if got := w.stored().Status.Deployer; got != deployer() {
			t.Errorf("status.deployer is %+v", got)
		}
	})
	t.Run("the finalizer is removed only after Delete succeeded [Lx6] [C13]", func(t *testing.T) {
		w := newWorld(t, objectsFor(extension.BeforeDeleteHook))
		w.fake.On(contract.ActionDelete, landscapertest.Fail(errBoom), landscapertest.Wait("pods", time.Second), landscapertest.Phase(phases.Deleting))
		for range 3 {
			w.pass()
			if !contract.HasOurFinalizer(w.stored()) {
				t.Fatal("the finalizer was removed too early")
			}
			w.clock.Step(time.Minute)
		}
		w.pass()
		if w.stored() != nil {
			t.Error("the item is still there")
		}
	})
	t.Run("a deletion without uninstall, or of an item that was never deployed, calls no method [C12]", func(t *testing.T) {
		for _, changes := range [][]change{
			{finishedJob("1", phases.Succeeded), job("2"), deleted, annotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")},
			{job("1"), deleted, withTarget, func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil }},
		} {
			w := newWorld(t, items(changes...))
			w.pass()
			w.wantCalls()
			if w.stored() != nil {
				t.Error("the item is still there")
			}
		}
	})
	t.Run("a job continues after a crash [C14]", func(t *testing.T) {
		w := newWorld(t, items(runningJob("1", -time.Minute)))
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		if s := w.stored().Status; s.JobIDFinished != "1" || !s.TransitionTimes.InitTime.Time.Equal(t0.Add(-time.Minute)) {
			t.Errorf("status = %+v, want jobIDFinished 1 and the init time of the start", s)
		}
		w.wantSent("patch", "patch status") // the first request only checks the version of the item; the second one stores the outcome
	})
	t.Run("an unchanged item is finished without a call [C15]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), job("2"), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true }))
		w.pass()
		w.wantCalls()
		w.wantSent("patch status")
		if s := w.stored().Status; s.JobIDFinished != "2" || s.Phase != phases.Succeeded {
			t.Errorf("status = %+v, want jobIDFinished 2 and phase Succeeded", s)
		}
	})
	t.Run("test-reconcile starts a new job [C15]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.TestReconcileOperation)))
		w.pass()
		s := w.stored().Status
		if s.JobID == "1" || s.JobID != s.JobIDFinished || len(w.stored().Annotations) != 0 {
			t.Errorf("status = %+v, want a finished job other than 1, and no annotations", s)
		}
	})
	t.Run("force-reconcile is removed after its run [Lx8]", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)))
		w.fake.On(contract.ActionForceReconcile, landscapertest.Fail(errBoom))
		w.pass()
		if w.stored().Annotations[lsv1alpha1.OperationAnnotation] == "" {
			t.Error("the annotation was removed although the call failed")
		}
		w.clock.Step(time.Minute)
		w.pass()
		if w.stored().Annotations[lsv1alpha1.OperationAnnotation] != "" {
			t.Error("the annotation is still there")
		}
		w.wantCalls(contract.ActionForceReconcile, contract.ActionForceReconcile)
	})
	t.Run("a missing target or context is reported and retried [Lx9]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), withTarget))
		ended := w.pass()
		s := w.stored().Status
		if s.Phase != phases.Init || s.LastError == nil || !strings.Contains(s.LastError.Message, `target "target" not found`) || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("phase %q, lastError %+v, queue %s", s.Phase, s.LastError, ended.Queue.RequeueAfter)
		}
		w.wantSent("patch status")
		if err := w.client.Create(t.Context(), target("any")); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Minute)
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		if contract.GetCondition(w.stored().Status.Conditions, contract.ConditionDeployed) != nil {
			t.Error("the condition Deployed=False stayed although the deployer ran")
		}
	})
	t.Run("a panic of the deployer becomes an error of the item [Lx10]", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Panic("ouch"))
		ended := w.pass()
		if e := w.stored().Status.LastError; e == nil || e.Message != "panic: ouch" || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("lastError %+v, queue %s", e, ended.Queue.RequeueAfter)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Run("each new error causes one event", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Fail(errBoom), landscapertest.Fail(errBoom), landscapertest.Fail(fmt.Errorf("bang")))
		for range 3 {
			w.pass()
			w.clock.Step(time.Minute)
		}
		want := []string{"ReconcileFailed: boom", "ReconcileFailed: bang"}
		if !slices.Equal(w.warnings, want) {
			t.Errorf("events %v, want %v", w.warnings, want)
		}
	})
}
