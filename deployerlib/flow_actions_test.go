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
	jobs := map[string]itemOption{
		"none": func(*lsv1alpha1.DeployItem) {}, "open": withJob("2"),
		"done": func(di *lsv1alpha1.DeployItem) { withJob("1")(di); di.Status.JobIDFinished = "1" },
	}
	for _, op := range operations {
		for _, phase := range states {
			for jobName, jobChange := range jobs {
				for _, deleting := range []bool{false, true} {
					for _, forced := range []bool{false, true} {
						name := fmt.Sprintf("op %q phase %q job %s deleting %t forced %t", op, phase, jobName, deleting, forced)
						checkOneAction(t, name, forced, func(di *lsv1alpha1.DeployItem) {
							withFinishedRun(phase)(di)
							jobChange(di)
							di.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Some"})
							if op != "" {
								withOperation(op)(di)
							}
							if deleting {
								withDeletion(di)
							}
						})
					}
				}
			}
		}
	}
}

// checkOneAction makes one attempt and checks that it calls at most one action. It also checks other rules that apply
// to every attempt. If the parameter `forced` is true, a hook forces a run.
func checkOneAction(t *testing.T, name string, forced bool, c itemOption) {
	t.Helper()
	w := newTestEnv(t, newItems(c), withHooks())
	if forced {
		w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
	}
	before := w.getItem()
	w.runAttempt()
	calls := w.fake.ListCalls(key)
	if len(calls) > 1 {
		t.Errorf("%s: calls %v", name, w.listActions())
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
	after := w.getItem()
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
	abort, force := withOperation(contract.AbortOperation), withOperation(lsv1alpha1.ForceReconcileOperation)
	tests := map[string]struct {
		changes []itemOption
		want    contract.Action
	}{
		"abort precedes delete [L35]":                {[]itemOption{withRun(0), abort, withDeletion}, contract.ActionAbort},
		"force-reconcile precedes delete [L35]":      {[]itemOption{withRun(0), force, withDeletion}, contract.ActionForceReconcile},
		"delete precedes reconcile [L33] [L35]":      {[]itemOption{withRun(0), withDeletion}, contract.ActionDelete},
		"abort [L31]":                                {[]itemOption{withRun(0), abort}, contract.ActionAbort},
		"force-reconcile [L32]":                      {[]itemOption{withRun(0), force}, contract.ActionForceReconcile},
		"reconcile is the default [L34]":             {[]itemOption{withRun(0)}, contract.ActionReconcile},
		"abort of a job [L31]":                       {[]itemOption{withRunningJob("1", 0), abort}, contract.ActionAbort},
		"force-reconcile of an unfinished job [L32]": {[]itemOption{withJob("1"), force}, contract.ActionForceReconcile},
		"force-reconcile of a finished item [Lx7]":   {[]itemOption{withFinishedRun(phases.Succeeded), force}, contract.ActionForceReconcile},
		"deletion without a new generation [Lx7]":    {[]itemOption{withFinishedRun(phases.Succeeded), withDeletion}, contract.ActionDelete},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, newItems(test.changes...))
			w.runAttempt()
			w.expectCalls(test.want)
		})
	}
	t.Run("delete follows a force-reconcile and an abort [L35]", func(t *testing.T) {
		for _, first := range []itemOption{abort, force} {
			w := newTestEnv(t, newItems(withRun(-2*time.Minute), first, withDeletion)) // the run began before the deletion
			w.runAttempt()
			for range 3 {
				if w.getItem() != nil {
					w.runAttempt()
				}
			}
			if w.getItem() != nil || w.fake.CountCalls(key, contract.ActionDelete) != 1 {
				t.Errorf("calls %v, item gone: %t", w.listActions(), w.getItem() == nil)
			}
		}
	})
	t.Run("an abort that comes too late is only removed [Lx7]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), abort, withAnnotation(contract.AbortTimestampAnnotation, t0.Format(time.RFC3339))))
		w.runAttempt()
		w.expectCalls()
		if len(w.getItem().Annotations) != 0 {
			t.Errorf("annotations %v", w.getItem().Annotations)
		}
		w.expectRequests("patch")
	})
}

func TestDefaultFlow(t *testing.T) {
	t.Run("a deleted item causes neither an error nor a requeue [L23]", func(t *testing.T) {
		w := newTestEnv(t, nil, withHooks())
		ended := w.runAttempt()
		if ended.Err != nil || ended.Queue.RequeueAfter != 0 || len(w.hooks.Types()) != 1 {
			t.Errorf("got %+v after hooks %v", ended, w.hooks.Types())
		}
		if w.NumItems() != 0 {
			t.Error("the item is still remembered")
		}
	})
	t.Run("the deployer is responsible for an item without a target, and for each item without selectors [L24]", func(t *testing.T) {
		for _, s := range []envOption{withSelector(), withHooks()} {
			w := newTestEnv(t, newItems(withJob("1")), s)
			w.runAttempt()
			w.expectCalls(contract.ActionReconcile)
		}
		w := newTestEnv(t, append(newItems(withJob("1"), withTarget), newTarget("any")))
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("items of other deployers are never written [C1] [C2] [L24] [L25]", func(t *testing.T) {
		for name, objects := range map[string][]client.Object{
			"type":           newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Type = "other" }),
			"target":         append(newItems(withJob("1"), withTarget), newTarget("other")),
			"missing target": newItems(withJob("1"), withTarget),
		} {
			w := newTestEnv(t, objects, withSelector())
			w.runAttempt()
			if sent := w.popRequests(); len(sent) != 0 {
				t.Errorf("%s: requests %v", name, sent)
			}
		}
	})
	t.Run("the deployer is responsible for items with matching labels only", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withArgs(func(args *deployerlib.DeployerArgs) {
			selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchLabels: map[string]string{"shard": "1"}})
			if err != nil {
				t.Fatal(err)
			}
			args.ItemSelector = selector
		}))
		w.runAttempt()
		w.expectCalls()
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"shard": "1"} })
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("annotations are removed after the start of the run is stored [L26] [C3] [C5]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withOperation(lsv1alpha1.ReconcileOperation), withAnnotation(lsv1alpha1.ReconcileTimestampAnnotation, t0.Format(time.RFC3339))))
		w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if di := w.getItem(); len(di.Annotations) != 0 || !contract.HasLandscaperFinalizer(di) {
				t.Errorf("when the deployer ran: annotations %v, finalizers %v [Lx6]", di.Annotations, di.Finalizers)
			}
			return nil
		})
		w.runAttempt()
		w.expectRequests("patch status", "patch", "patch status")
	})
	t.Run("a changed generation starts a run [L27] [C7]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), func(di *lsv1alpha1.DeployItem) { di.Generation = 5 }))
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		if got := w.getItem().Status.ObservedGeneration; got != 5 {
			t.Errorf("observedGeneration %d", got)
		}
	})
	t.Run("items with a final phase do not run, others do [L4] [L29] [C8]", func(t *testing.T) {
		for phase, want := range map[lsv1alpha1.DeployItemPhase]bool{
			phases.Succeeded: false, phases.Failed: false, "Aborted": false,
			phases.Init: true, phases.Progressing: true, phases.Deleting: true, phases.Completing: true, "": true, "Strange": true,
		} {
			w := newTestEnv(t, newItems(withFinishedRun(phase), func(di *lsv1alpha1.DeployItem) { di.Status.LastReconcileTime = newTime(0) }))
			w.runAttempt()
			if called := len(w.listActions()) == 1; called != want {
				t.Errorf("phase %q: called %t, want %t", phase, called, want)
			}
		}
	})
	t.Run("the deployer receives the phase Init or InitDelete, regardless of the stored phase [C9]", func(t *testing.T) {
		for _, changes := range [][]itemOption{{withRun(0)}, {withRunningJob("1", 0)}, {withRunningJob("1", 0), withDeletion}} {
			w := newTestEnv(t, newItems(changes...))
			w.runAttempt()
			call := w.fake.ListCalls(key)[0]
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
		w := newTestEnv(t, newItems(withJob("1")))
		w.runAttempt()
		if got := w.getItem().Status.Deployer; got != newDeployerInfo() {
			t.Errorf("status.deployer is %+v", got)
		}
	})
	t.Run("the finalizer is removed only after Delete succeeded [Lx6] [C13]", func(t *testing.T) {
		w := newTestEnv(t, newObjectsFor(extension.BeforeDeleteHook))
		w.fake.QueueAnswers(contract.ActionDelete, landscapertest.ReturnError(errBoom), landscapertest.ReturnWaitFor("pods", time.Second), landscapertest.SetPhase(phases.Deleting))
		for range 3 {
			w.runAttempt()
			if !contract.HasLandscaperFinalizer(w.getItem()) {
				t.Fatal("the finalizer was removed too early")
			}
			w.clock.Step(time.Minute)
		}
		w.runAttempt()
		if w.getItem() != nil {
			t.Error("the item is still there")
		}
	})
	t.Run("a deletion without uninstall, or of an item that was never deployed, calls no method [C12]", func(t *testing.T) {
		for _, changes := range [][]itemOption{
			{withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion, withAnnotation(lsv1alpha1.DeleteWithoutUninstallAnnotation, "true")},
			{withJob("1"), withDeletion, withTarget, func(di *lsv1alpha1.DeployItem) { di.Spec.Configuration = nil }},
		} {
			w := newTestEnv(t, newItems(changes...))
			w.runAttempt()
			w.expectCalls()
			if w.getItem() != nil {
				t.Error("the item is still there")
			}
		}
	})
	t.Run("a job continues after a crash [C14]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRunningJob("1", -time.Minute)))
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		if s := w.getItem().Status; s.JobIDFinished != "1" || !s.TransitionTimes.InitTime.Time.Equal(t0.Add(-time.Minute)) {
			t.Errorf("status = %+v, want jobIDFinished 1 and the init time of the start", s)
		}
		w.expectRequests("patch", "patch status") // the first request only checks the version of the item; the second one stores the outcome
	})
	t.Run("an unchanged item is finished without a call [C15]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), func(di *lsv1alpha1.DeployItem) { di.Spec.UpdateOnChangeOnly = true }))
		w.runAttempt()
		w.expectCalls()
		w.expectRequests("patch status")
		if s := w.getItem().Status; s.JobIDFinished != "2" || s.Phase != phases.Succeeded {
			t.Errorf("status = %+v, want jobIDFinished 2 and phase Succeeded", s)
		}
	})
	t.Run("test-reconcile starts a new job [C15]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.TestReconcileOperation)))
		w.runAttempt()
		s := w.getItem().Status
		if s.JobID == "1" || s.JobID != s.JobIDFinished || len(w.getItem().Annotations) != 0 {
			t.Errorf("status = %+v, want a finished job other than 1, and no annotations", s)
		}
	})
	t.Run("force-reconcile is removed after its run [Lx8]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)))
		w.fake.QueueAnswers(contract.ActionForceReconcile, landscapertest.ReturnError(errBoom))
		w.runAttempt()
		if w.getItem().Annotations[lsv1alpha1.OperationAnnotation] == "" {
			t.Error("the annotation was removed although the call failed")
		}
		w.clock.Step(time.Minute)
		w.runAttempt()
		if w.getItem().Annotations[lsv1alpha1.OperationAnnotation] != "" {
			t.Error("the annotation is still there")
		}
		w.expectCalls(contract.ActionForceReconcile, contract.ActionForceReconcile)
	})
	t.Run("a missing target or context is reported and retried [Lx9]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), withTarget))
		ended := w.runAttempt()
		s := w.getItem().Status
		if s.Phase != phases.Init || s.LastError == nil || !strings.Contains(s.LastError.Message, `target "target" not found`) || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("phase %q, lastError %+v, queue %s", s.Phase, s.LastError, ended.Queue.RequeueAfter)
		}
		w.expectRequests("patch status")
		if err := w.client.Create(t.Context(), newTarget("any")); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		if contract.GetCondition(w.getItem().Status.Conditions, contract.ConditionDeployed) != nil {
			t.Error("the condition Deployed=False stayed although the deployer ran")
		}
	})
	t.Run("a panic of the deployer becomes an error of the item [Lx10]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.Panic("ouch"))
		ended := w.runAttempt()
		if e := w.getItem().Status.LastError; e == nil || e.Message != "panic: ouch" || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("lastError %+v, queue %s", e, ended.Queue.RequeueAfter)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Run("each new error causes one event", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errBoom), landscapertest.ReturnError(errBoom), landscapertest.ReturnError(fmt.Errorf("bang")))
		for range 3 {
			w.runAttempt()
			w.clock.Step(time.Minute)
		}
		want := []string{"ReconcileFailed: boom", "ReconcileFailed: bang"}
		if !slices.Equal(w.warnings, want) {
			t.Errorf("events %v, want %v", w.warnings, want)
		}
	})
}
