// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestBudgets(t *testing.T) {
	noFinalizer := func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil }
	tests := map[string]struct {
		objects []client.Object
		answer  landscapertest.Answer
		want    []string
	}{
		"finished item":                            {newItems(withFinishedJob("1", phases.Succeeded)), nil, nil},
		"first job":                                {newItems(withJob("1"), noFinalizer), nil, []string{"patch status", "patch", "patch status"}},
		"next job":                                 {newItems(withFinishedJob("1", phases.Succeeded), withJob("2")), nil, []string{"patch status", "patch status"}},
		"deletion":                                 {newItems(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion), nil, []string{"patch status", "patch"}},
		"background run":                           {newItems(withFinishedJob("1", phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)), nil, []string{"patch status", "patch"}},
		"resume":                                   {newItems(withRunningJob("1", 0)), nil, []string{"patch", "patch status"}},
		"checkpoint that changes nothing":          {newItems(withJob("1")), newCheckpointAction(false), []string{"patch status", "patch status"}},
		"checkpoint that stores something":         {newItems(withJob("1")), newCheckpointAction(true), []string{"patch status", "patch status", "patch status"}},
		"deployer changes protected fields":        {newItems(withJob("1")), landscapertest.UpdateStatus(setProtectedFields), []string{"patch status", "patch status"}},
		"deployer sets the phase Succeeded":        {newItems(withJob("1")), landscapertest.SetPhase(phases.Succeeded), []string{"patch status", "patch status"}},
		"deployer sets an invalid provider status": {newItems(withJob("1")), landscapertest.UpdateStatus(setInvalidProviderStatus), []string{"patch status", "patch status"}},
		"deployer fails with an unknown error":     {newItems(withJob("1")), landscapertest.ReturnError(errBoom), []string{"patch status", "patch status"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newTestEnv(t, test.objects)
			w.fake.SetDefaultAnswer(contract.ActionReconcile, test.answer)
			w.runAttempt()
			w.expectRequests(test.want...)
			w.runAttempt() // nothing is due, or the attempt fails with the same error, which is not written again
			if len(test.want) == 0 || strings.HasPrefix(name, "deployer fails") {
				w.expectRequests()
			}
		})
	}
}

// newCheckpointAction returns an action that calls Checkpoint. If the parameter `change` is true, the action changes
// the provider status first.
func newCheckpointAction(change bool) landscapertest.Answer {
	return func(ctx context.Context, in landscapertest.Input) error {
		if change {
			in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Half"})
		}
		return deployerlib.Checkpoint(ctx)
	}
}

// setProtectedFields changes status fields that belong to the contract.
func setProtectedFields(s *lsv1alpha1.DeployItemStatus) {
	s.JobID, s.JobIDFinished, s.ObservedGeneration = "mine", "mine", 99
	s.LastReconcileTime, s.TransitionTimes = nil, nil
	s.Deployer.Name = "me"
}

// setInvalidProviderStatus sets an invalid provider status. If it were stored, the API server would refuse all further
// writes of the item.
func setInvalidProviderStatus(s *lsv1alpha1.DeployItemStatus) { s.ProviderStatus = toRaw("text") }

func TestCallResults(t *testing.T) {
	status := func(w *testEnv) lsv1alpha1.DeployItemStatus { return w.getItem().Status }
	t.Run("protected fields that a deployer changes are restored", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.UpdateStatus(setProtectedFields))
		w.runAttempt()
		if s := status(w); s.JobID != "1" || s.JobIDFinished != "1" || s.ObservedGeneration != 1 || s.Deployer != newDeployerInfo() || s.LastReconcileTime == nil {
			t.Errorf("status = %+v, want the protected fields as before", s)
		}
	})
	t.Run("an invalid provider status fails the run", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.UpdateStatus(setInvalidProviderStatus))
		w.runAttempt()
		if s := status(w); s.LastError == nil || s.ProviderStatus != nil || s.Phase == phases.Succeeded {
			t.Errorf("status = %+v, want a lastError, no providerStatus and a phase other than Succeeded", s)
		}
	})
	t.Run("changes to the status in memory are stored after an error", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(landscapertest.UpdateStatus(func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Kept"})
			s.Phase = phases.Progressing
		}), landscapertest.ReturnError(errBoom)))
		w.runAttempt()
		if s := status(w); s.ProviderStatus == nil || s.Phase != phases.Progressing || s.LastError == nil {
			t.Errorf("status = %+v, want a providerStatus, phase Progressing and a lastError", s)
		}
	})
	t.Run("a run ends when the call returns nil after WaitFor", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errBoom), landscapertest.ReturnWaitFor("pods", 20*time.Second))
		w.runAttempt()
		w.clock.Step(time.Minute)
		ended := w.runAttempt()
		if s := status(w); s.Phase != phases.Progressing || s.LastError != nil || ended.Err != nil || ended.Queue.RequeueAfter != 20*time.Second {
			t.Errorf("while waiting: %+v, queue %s, error %v", s, ended.Queue.RequeueAfter, ended.Err)
		}
		w.runAttempt()
		if s := status(w); s.Phase != phases.Succeeded || contract.GetCondition(s.Conditions, contract.ConditionWaiting) != nil {
			t.Errorf("after it: %+v", s)
		}
	})
	t.Run("an item in the phase Progressing is reconciled again after a delay with jitter", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing))
		for range 20 {
			after := w.runAttempt().Queue.RequeueAfter
			if after < 4500*time.Millisecond || after > 5500*time.Millisecond {
				t.Errorf("polled after %s, want 5s ± 10 %%", after)
			}
		}
	})
	t.Run("WaitFor that is joined with an error counts as an error", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunAll(landscapertest.ReturnWaitFor("x", time.Hour), landscapertest.ReturnError(errBoom)))
		w.runAttempt()
		if s := status(w); s.LastError == nil || s.Phase != phases.Init {
			t.Errorf("status = %+v, want a lastError and phase Init", s)
		}
	})
	t.Run("an unrecoverable code ends the job at once [C10]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(errors.Join(errBoom, deployerlib.NewConfigError("spec.config.a", "is odd"))))
		ended := w.runAttempt()
		if s := status(w); s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError == nil || ended.Queue.RequeueAfter != 0 {
			t.Errorf("status %+v, queue %+v", s, ended.Queue)
		}
	})
	t.Run("an unrecoverable failure keeps the schedule of hooks", func(t *testing.T) {
		for _, missing := range []bool{false, true} {
			w := newTestEnv(t, newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) {
				if missing {
					di.Spec.Configuration = nil
				}
			}), withHooks())
			w.setHookResult(extension.ShouldReconcileHook, newHookResult(true, time.Hour), nil)
			w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(deployerlib.NewConfigError("spec.config", "is odd")))
			if got := w.runAttempt().Queue.RequeueAfter; missing && (got < 900*time.Millisecond || got > 1100*time.Millisecond) || !missing && got != time.Hour {
				t.Errorf("configuration missing: %t, requeue after %s", missing, got)
			}
			if got := w.runAttempt().Queue.RequeueAfter; got != time.Hour {
				t.Errorf("got the requeue after %s, want the delay that the hook requests", got)
			}
		}
	})
	t.Run("no wait exceeds the deadline", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.fake.SetDefaultAnswer(contract.ActionReconcile, landscapertest.ReturnWaitFor("the other side", 100*time.Hour))
		w.setHookResult(extension.EndHook, newHookResult(false, 100*time.Hour), nil)
		if got := w.runAttempt().Queue.RequeueAfter; got != contract.DefaultTimeout {
			t.Errorf("got the requeue after %s, want %s", got, contract.DefaultTimeout)
		}
		w.clock.Step(contract.DefaultTimeout)
		w.reconcile()
		s := status(w)
		if s.Phase != phases.Failed || s.LastError.Reason != lsv1alpha1.ProgressingTimeoutReason || !strings.Contains(s.LastError.Message, "the other side") {
			t.Errorf("after the deadline: %+v", s.LastError)
		}
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("the abort of a hook does not exceed the deadline", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")), withHooks())
		w.setHookResult(extension.BeforeReconcileHook, newHookResult(true, 0), nil)
		if got := w.runAttempt().Queue.RequeueAfter; got != contract.DefaultTimeout {
			t.Errorf("got the requeue after %s, want %s", got, contract.DefaultTimeout)
		}
	})
}

func newConflict() error {
	return apierrors.NewConflict(lsv1alpha1.Resource("deployitems"), key.Name, errBoom)
}

// runBeforeOutcome calls f once, before the second status write of a run, which stores the outcome.
func (w *testEnv) runBeforeOutcome(f func()) {
	n := 0
	w.beforeRequest = func(request string, _ client.Object) error {
		if request == "patch status" {
			if n++; n == 2 {
				f()
			}
		}
		return nil
	}
}

func TestConflicts(t *testing.T) {
	t.Run("a conflict at the start ends the reconcile without a call", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.beforeRequest = func(string, client.Object) error { return newConflict() }
		ended := w.runAttempt()
		w.expectCalls()
		if ended.Err != nil || ended.Queue.RequeueAfter != time.Second {
			t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
		}
		w.beforeRequest = nil
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("a conflict at the end is resolved while the run is current", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.runBeforeOutcome(func() { w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }) })
		w.runAttempt()
		di := w.getItem()
		if di.Status.JobIDFinished != "1" || di.Status.Phase != phases.Succeeded || di.Labels["a"] != "b" {
			t.Errorf("labels %v, status %+v, want the label of the other client and a finished job", di.Labels, di.Status)
		}
		w.expectRequests("patch status", "patch status", "get", "patch status")
	})
	t.Run("a conflict with an interrupt keeps the interrupt and stores the provider status", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.UpdateStatus(func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Kept"})
		}))
		w.runBeforeOutcome(func() {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Failed })
		})
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Failed || s.ProviderStatus == nil {
			t.Errorf("status = %+v, want phase Failed and a providerStatus", s)
		}
	})
	t.Run("a conflict with a new job does not finish the new job", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.runBeforeOutcome(func() {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.JobID = "1", "2" })
		})
		w.runAttempt()
		if s := w.getItem().Status; s.JobIDFinished != "1" || s.JobID != "2" {
			t.Errorf("status = %+v, want jobIDFinished 1 and jobID 2", s)
		}
		w.beforeRequest = nil
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a conflict with the deletion of the item ends the reconcile", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.runBeforeOutcome(func() {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil })
			if err := w.client.Delete(withoutRecording(t.Context()), newItem()); err != nil {
				t.Error(err)
			}
		})
		if ended := w.runAttempt(); ended.Err != nil {
			t.Errorf("error %v", ended.Err)
		}
	})
	t.Run("repeated conflicts end the reconcile with a retry", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.beforeRequest = func(request string, _ client.Object) error {
			if request == "patch status" {
				if n++; n > 1 {
					return newConflict()
				}
			}
			return nil
		}
		ended := w.runAttempt()
		if ended.Err == nil || ended.Queue.RequeueAfter <= 0 || n > 10 {
			t.Errorf("error %v, queue %s after %d writes", ended.Err, ended.Queue.RequeueAfter, n)
		}
	})
	t.Run("a resumed run does not start if the item has changed", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRunningJob("1", 0)))
		old := w.getItem()
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Succeeded })
		w.transformCached = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return old }
		w.runAttempt()
		w.expectCalls()
		w.expectRequests("patch")
	})
	t.Run("a cached item that is older than the last write waits for the event of that write", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		old := w.getItem()
		w.runAttempt()
		w.popRequests()
		w.transformCached = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return old }
		ended := w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		w.expectRequests()
		if ended.Queue.RequeueAfter != time.Second {
			t.Errorf("got the requeue after %s", ended.Queue.RequeueAfter)
		}
		if !w.HandleEvent(w.getItem()) {
			t.Error("the event of the library's own write does not lead to the reconcile that waits for it")
		}
	})
}

func TestUnconfirmedWrites(t *testing.T) {
	lost := func(w *testEnv, from int) {
		n := 0
		w.afterRequest = func(request string, _ client.Object) error {
			if request == "patch status" {
				if n++; n >= from {
					return fmt.Errorf("connection lost")
				}
			}
			return nil
		}
	}
	t.Run("a lost response does not repeat the call", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		lost(w, 2)
		ended := w.runAttempt()
		if ended.Err == nil || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
		}
		w.afterRequest = nil
		for range 3 {
			w.clock.Step(time.Minute)
			w.runAttempt()
		}
		w.expectCalls(contract.ActionReconcile)
		if s := w.getItem().Status; s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want jobIDFinished 1", s)
		}
	})
	t.Run("a failed write is repeated without a call", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.beforeRequest = func(request string, _ client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInternalError(errBoom)
			}
			return nil
		}
		w.runAttempt()
		if s := w.getItem().Status; s.JobIDFinished != "" || s.LastError != nil {
			t.Fatalf("status = %+v, want no jobIDFinished and no lastError", s)
		}
		w.clock.Step(time.Minute)
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile)
		if s := w.getItem().Status; s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want jobIDFinished 1", s)
		}
	})
	t.Run("a pending outcome does not finish a newer job", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.beforeRequest = func(string, client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInternalError(errBoom)
			}
			return nil
		}
		w.runAttempt()
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.JobID = "1", "2" })
		if got := w.runAttempt().Queue.RequeueAfter; got != 1 {
			t.Errorf("after the pending write: got the requeue after %s, want it immediately", got)
		}
		if s := w.getItem().Status; s.JobIDFinished != "1" || s.JobID != "2" {
			t.Errorf("status = %+v, want jobIDFinished 1 and jobID 2", s)
		}
		w.runAttempt()
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a status that the API server rejects ends the run with the reason", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		n := 0
		w.beforeRequest = func(request string, _ client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInvalid(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem").GroupKind(), key.Name, nil)
			}
			return nil
		}
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Failed || s.LastError == nil || s.LastError.Reason != "StatusRefused" {
			t.Errorf("status = %+v, want phase Failed and a lastError with reason StatusRefused", s)
		}
	})
}

// TestRejectedStatusOfHook tests hooks that change the status in such a way that the API server refuses the status.
func TestRejectedStatusOfHook(t *testing.T) {
	invalid := apierrors.NewInvalid(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem").GroupKind(), key.Name, nil)
	spoils := func(_ context.Context, _ logr.Logger, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, _ extension.HookType) (*extension.HookResult, error) {
		di.Status.Conditions = append(di.Status.Conditions, lsv1alpha1.Condition{Type: "Spoilt"})
		return nil, nil
	}
	start := func(t *testing.T, stored itemOption) *testEnv {
		w := newTestEnv(t, newItems(stored), func(w *testEnv, _ *deployerlib.DeployerArgs) {
			w.fake.RegisterHook(spoils, extension.ShouldReconcileHook)
		})
		w.beforeRequest = func(string, client.Object) error {
			w.beforeRequest = nil
			return invalid
		}
		return w
	}
	t.Run("a rejected status of a hook in a run is shown in the run", func(t *testing.T) {
		w := start(t, withJob("1"))
		w.runAttempt()
		s := w.getItem().Status
		if s.Phase != phases.Init || s.LastError == nil || contract.GetCondition(s.Conditions, "Spoilt") != nil {
			t.Errorf("status = %+v, want phase Init, a lastError and no condition Spoilt", s)
		}
		w.expectCalls()
	})
	t.Run("a rejected status of a hook of an item with nothing to do is shown in a condition", func(t *testing.T) {
		w := start(t, withFinishedJob("1", phases.Succeeded))
		w.runAttempt()
		s := w.getItem().Status
		if c := contract.GetCondition(s.Conditions, contract.ConditionBackground); c == nil || c.Reason != "HookFailed" || s.LastError != nil {
			t.Errorf("status = %+v, want the reason HookFailed in the condition, and no lastError", s)
		}
	})
}

func TestCheckpoint(t *testing.T) {
	t.Run("Checkpoint fails outside a call", func(t *testing.T) {
		if err := deployerlib.Checkpoint(t.Context()); !errors.Is(err, deployerlib.ErrNoCall) {
			t.Errorf("Checkpoint() = %v, want %v", err, deployerlib.ErrNoCall)
		}
		if p := deployerlib.StoredPhase(t.Context()); p != "" {
			t.Errorf("stored phase %q", p)
		}
	})
	t.Run("Checkpoint stores progress, but neither phase nor job fields", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			setProtectedFields(&in.Item.Status)
			in.Item.Status.Phase = phases.Failed
			in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			if err := deployerlib.Checkpoint(ctx); err != nil {
				t.Error(err)
			}
			if s := w.getItem().Status; s.Phase != phases.Init || s.JobID != "1" || s.ProviderStatus == nil || s.ObservedGeneration != 1 {
				t.Errorf("stored: %+v", s)
			}
			in.Item.Status.Phase = phases.Init
			return nil
		})
		w.runAttempt()
	})
	t.Run("Checkpoint reports that the job is no longer current", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Failed })
			in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			err := deployerlib.Checkpoint(ctx)
			if !errors.Is(err, deployerlib.ErrSuperseded) {
				t.Errorf("error = %v, want %v", err, deployerlib.ErrSuperseded)
			}
			return err
		})
		w.runAttempt()
		s := w.getItem().Status
		if s.ProviderStatus == nil || s.Phase != phases.Failed || s.LastError != nil {
			t.Errorf("status = %+v, want a providerStatus, phase Failed and no lastError", s)
		}
	})
	t.Run("Checkpoint rejects a provider status that cannot be stored", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			setInvalidProviderStatus(&in.Item.Status)
			err := deployerlib.Checkpoint(ctx)
			if err == nil {
				t.Error("no error")
			}
			return err
		})
		w.runAttempt()
	})
	t.Run("a provider status that does not fit into the item ends the run [D11]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			w.beforeRequest = func(string, client.Object) error {
				return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
			}
			err := deployerlib.Checkpoint(ctx)
			w.beforeRequest = nil
			return fmt.Errorf("note what is about to be written: %w", err)
		})
		w.runAttempt()
		s := w.getItem().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want phase Failed and jobIDFinished 1", s)
		}
		if e := s.LastError; e == nil || e.Reason != "StatusTooLarge" || !slices.Contains(e.Codes, lsv1alpha1.ErrorConfigurationProblem) {
			t.Errorf("error %+v", e)
		}
	})
	t.Run("Checkpoint keeps all fields of the caller's copy", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			in.Item.Status.Conditions = contract.SetCondition(nil, "Mine", lsv1alpha1.ConditionTrue, "Yes", "here", t0)
			before := in.Item.Status.DeepCopy()
			if err := deployerlib.Checkpoint(ctx); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(before, &in.Item.Status); diff != "" {
				t.Errorf("the working copy changed:\n%s", diff)
			}
			return nil
		})
		w.runAttempt()
	})
}
