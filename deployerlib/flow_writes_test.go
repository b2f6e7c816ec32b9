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
		"finished item":                            {items(finishedJob("1", phases.Succeeded)), nil, nil},
		"first job":                                {items(job("1"), noFinalizer), nil, []string{"patch status", "patch", "patch status"}},
		"next job":                                 {items(finishedJob("1", phases.Succeeded), job("2")), nil, []string{"patch status", "patch status"}},
		"deletion":                                 {items(finishedJob("1", phases.Succeeded), job("2"), deleted), nil, []string{"patch status", "patch"}},
		"background run":                           {items(finishedJob("1", phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)), nil, []string{"patch status", "patch"}},
		"resume":                                   {items(runningJob("1", 0)), nil, []string{"patch", "patch status"}},
		"checkpoint that changes nothing":          {items(job("1")), checkpoint(false), []string{"patch status", "patch status"}},
		"checkpoint that stores something":         {items(job("1")), checkpoint(true), []string{"patch status", "patch status", "patch status"}},
		"deployer changes protected fields":        {items(job("1")), landscapertest.Change(vandalise), []string{"patch status", "patch status"}},
		"deployer sets the phase Succeeded":        {items(job("1")), landscapertest.Phase(phases.Succeeded), []string{"patch status", "patch status"}},
		"deployer sets an invalid provider status": {items(job("1")), landscapertest.Change(poison), []string{"patch status", "patch status"}},
		"deployer fails with an unknown error":     {items(job("1")), landscapertest.Fail(errBoom), []string{"patch status", "patch status"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.objects)
			w.fake.Always(contract.ActionReconcile, test.answer)
			w.pass()
			w.wantSent(test.want...)
			w.pass() // nothing is due, or the attempt fails with the same error, which is not written again
			if len(test.want) == 0 || strings.HasPrefix(name, "deployer fails") {
				w.wantSent()
			}
		})
	}
}

// checkpoint returns an action that calls Checkpoint. If the parameter `change` is true, the action changes the
// provider status first.
func checkpoint(change bool) landscapertest.Answer {
	return func(ctx context.Context, in landscapertest.Input) error {
		if change {
			in.Item.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Half"})
		}
		return deployerlib.Checkpoint(ctx)
	}
}

// vandalise changes status fields that belong to the contract.
func vandalise(s *lsv1alpha1.DeployItemStatus) {
	s.JobID, s.JobIDFinished, s.ObservedGeneration = "mine", "mine", 99
	s.LastReconcileTime, s.TransitionTimes = nil, nil
	s.Deployer.Name = "me"
}

// poison sets an invalid provider status. If it were stored, the API server would refuse all further writes of the
// item.
func poison(s *lsv1alpha1.DeployItemStatus) { s.ProviderStatus = raw("text") }

func TestCallResults(t *testing.T) {
	status := func(w *world) lsv1alpha1.DeployItemStatus { return w.stored().Status }
	t.Run("protected fields that a deployer changes are restored", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Change(vandalise))
		w.pass()
		if s := status(w); s.JobID != "1" || s.JobIDFinished != "1" || s.ObservedGeneration != 1 || s.Deployer != deployer() || s.LastReconcileTime == nil {
			t.Errorf("status = %+v, want the protected fields as before", s)
		}
	})
	t.Run("an invalid provider status fails the run", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Change(poison))
		w.pass()
		if s := status(w); s.LastError == nil || s.ProviderStatus != nil || s.Phase == phases.Succeeded {
			t.Errorf("status = %+v, want a lastError, no providerStatus and a phase other than Succeeded", s)
		}
	})
	t.Run("changes to the status in memory are stored after an error", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.InTurn(landscapertest.Change(func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Kept"})
			s.Phase = phases.Progressing
		}), landscapertest.Fail(errBoom)))
		w.pass()
		if s := status(w); s.ProviderStatus == nil || s.Phase != phases.Progressing || s.LastError == nil {
			t.Errorf("status = %+v, want a providerStatus, phase Progressing and a lastError", s)
		}
	})
	t.Run("a run ends when the call returns nil after WaitFor", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Fail(errBoom), landscapertest.Wait("pods", 20*time.Second))
		w.pass()
		w.clock.Step(time.Minute)
		ended := w.pass()
		if s := status(w); s.Phase != phases.Progressing || s.LastError != nil || ended.Err != nil || ended.Queue.RequeueAfter != 20*time.Second {
			t.Errorf("while waiting: %+v, queue %s, error %v", s, ended.Queue.RequeueAfter, ended.Err)
		}
		w.pass()
		if s := status(w); s.Phase != phases.Succeeded || contract.GetCondition(s.Conditions, contract.ConditionWaiting) != nil {
			t.Errorf("after it: %+v", s)
		}
	})
	t.Run("an item in the phase Progressing is reconciled again after a delay with jitter", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.Always(contract.ActionReconcile, landscapertest.Phase(phases.Progressing))
		for range 20 {
			after := w.pass().Queue.RequeueAfter
			if after < 4500*time.Millisecond || after > 5500*time.Millisecond {
				t.Errorf("polled after %s, want 5s ± 10 %%", after)
			}
		}
	})
	t.Run("WaitFor that is joined with an error counts as an error", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Both(landscapertest.Wait("x", time.Hour), landscapertest.Fail(errBoom)))
		w.pass()
		if s := status(w); s.LastError == nil || s.Phase != phases.Init {
			t.Errorf("status = %+v, want a lastError and phase Init", s)
		}
	})
	t.Run("an unrecoverable code ends the job at once [C10]", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Fail(errors.Join(errBoom, deployerlib.ConfigError("spec.config.a", "is odd"))))
		ended := w.pass()
		if s := status(w); s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError == nil || ended.Queue.RequeueAfter != 0 {
			t.Errorf("status %+v, queue %+v", s, ended.Queue)
		}
	})
	t.Run("an unrecoverable failure keeps the schedule of hooks", func(t *testing.T) {
		for _, missing := range []bool{false, true} {
			w := newWorld(t, items(job("1"), func(di *lsv1alpha1.DeployItem) {
				if missing {
					di.Spec.Configuration = nil
				}
			}), withHooks())
			w.on(extension.ShouldReconcileHook, result(true, time.Hour), nil)
			w.fake.On(contract.ActionReconcile, landscapertest.Fail(deployerlib.ConfigError("spec.config", "is odd")))
			if got := w.pass().Queue.RequeueAfter; missing && (got < 900*time.Millisecond || got > 1100*time.Millisecond) || !missing && got != time.Hour {
				t.Errorf("configuration missing: %t, requeue after %s", missing, got)
			}
			if got := w.pass().Queue.RequeueAfter; got != time.Hour {
				t.Errorf("got the requeue after %s, want the delay that the hook requests", got)
			}
		}
	})
	t.Run("no wait exceeds the deadline", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.fake.Always(contract.ActionReconcile, landscapertest.Wait("the other side", 100*time.Hour))
		w.on(extension.EndHook, result(false, 100*time.Hour), nil)
		if got := w.pass().Queue.RequeueAfter; got != contract.DefaultTimeout {
			t.Errorf("got the requeue after %s, want %s", got, contract.DefaultTimeout)
		}
		w.clock.Step(contract.DefaultTimeout)
		w.reconcile()
		s := status(w)
		if s.Phase != phases.Failed || s.LastError.Reason != lsv1alpha1.ProgressingTimeoutReason || !strings.Contains(s.LastError.Message, "the other side") {
			t.Errorf("after the deadline: %+v", s.LastError)
		}
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("the abort of a hook does not exceed the deadline", func(t *testing.T) {
		w := newWorld(t, items(job("1")), withHooks())
		w.on(extension.BeforeReconcileHook, result(true, 0), nil)
		if got := w.pass().Queue.RequeueAfter; got != contract.DefaultTimeout {
			t.Errorf("got the requeue after %s, want %s", got, contract.DefaultTimeout)
		}
	})
}

func conflict() error {
	return apierrors.NewConflict(lsv1alpha1.Resource("deployitems"), key.Name, errBoom)
}

// beforeFinal calls f once, before the second status write of a run, which stores the outcome.
func (w *world) beforeFinal(f func()) {
	n := 0
	w.fail = func(request string, _ client.Object) error {
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
		w := newWorld(t, items(job("1")))
		w.fail = func(string, client.Object) error { return conflict() }
		ended := w.pass()
		w.wantCalls()
		if ended.Err != nil || ended.Queue.RequeueAfter != time.Second {
			t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
		}
		w.fail = nil
		w.pass()
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("a conflict at the end is resolved while the run is current", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.beforeFinal(func() { w.update(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }) })
		w.pass()
		di := w.stored()
		if di.Status.JobIDFinished != "1" || di.Status.Phase != phases.Succeeded || di.Labels["a"] != "b" {
			t.Errorf("labels %v, status %+v, want the label of the other client and a finished job", di.Labels, di.Status)
		}
		w.wantSent("patch status", "patch status", "get", "patch status")
	})
	t.Run("a conflict with an interrupt keeps the interrupt and stores the provider status", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, landscapertest.Change(func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Kept"})
		}))
		w.beforeFinal(func() {
			w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Failed })
		})
		w.pass()
		if s := w.stored().Status; s.Phase != phases.Failed || s.ProviderStatus == nil {
			t.Errorf("status = %+v, want phase Failed and a providerStatus", s)
		}
	})
	t.Run("a conflict with a new job does not finish the new job", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.beforeFinal(func() {
			w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.JobID = "1", "2" })
		})
		w.pass()
		if s := w.stored().Status; s.JobIDFinished != "1" || s.JobID != "2" {
			t.Errorf("status = %+v, want jobIDFinished 1 and jobID 2", s)
		}
		w.fail = nil
		w.clock.Step(time.Minute)
		w.pass()
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a conflict with the deletion of the item ends the reconcile", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.beforeFinal(func() {
			w.update(func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil })
			if err := w.client.Delete(quiet(t.Context()), item()); err != nil {
				t.Error(err)
			}
		})
		if ended := w.pass(); ended.Err != nil {
			t.Errorf("error %v", ended.Err)
		}
	})
	t.Run("repeated conflicts end the reconcile with a retry", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fail = func(request string, _ client.Object) error {
			if request == "patch status" {
				if n++; n > 1 {
					return conflict()
				}
			}
			return nil
		}
		ended := w.pass()
		if ended.Err == nil || ended.Queue.RequeueAfter <= 0 || n > 10 {
			t.Errorf("error %v, queue %s after %d writes", ended.Err, ended.Queue.RequeueAfter, n)
		}
	})
	t.Run("a resumed run does not start if the item has changed", func(t *testing.T) {
		w := newWorld(t, items(runningJob("1", 0)))
		old := w.stored()
		w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Succeeded })
		w.serve = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return old }
		w.pass()
		w.wantCalls()
		w.wantSent("patch")
	})
	t.Run("a cached item that is older than the last write waits for the event of that write", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		old := w.stored()
		w.pass()
		w.sent()
		w.serve = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return old }
		ended := w.pass()
		w.wantCalls(contract.ActionReconcile)
		w.wantSent()
		if ended.Queue.RequeueAfter != time.Second {
			t.Errorf("got the requeue after %s", ended.Queue.RequeueAfter)
		}
		if !w.Event(w.stored()) {
			t.Error("the event of the library's own write does not lead to the reconcile that waits for it")
		}
	})
}

func TestUnconfirmedWrites(t *testing.T) {
	lost := func(w *world, from int) {
		n := 0
		w.lose = func(request string, _ client.Object) error {
			if request == "patch status" {
				if n++; n >= from {
					return fmt.Errorf("connection lost")
				}
			}
			return nil
		}
	}
	t.Run("a lost response does not repeat the call", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		lost(w, 2)
		ended := w.pass()
		if ended.Err == nil || ended.Queue.RequeueAfter <= 0 {
			t.Errorf("error %v, queue %s", ended.Err, ended.Queue.RequeueAfter)
		}
		w.lose = nil
		for range 3 {
			w.clock.Step(time.Minute)
			w.pass()
		}
		w.wantCalls(contract.ActionReconcile)
		if s := w.stored().Status; s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want jobIDFinished 1", s)
		}
	})
	t.Run("a failed write is repeated without a call", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fail = func(request string, _ client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInternalError(errBoom)
			}
			return nil
		}
		w.pass()
		if s := w.stored().Status; s.JobIDFinished != "" || s.LastError != nil {
			t.Fatalf("status = %+v, want no jobIDFinished and no lastError", s)
		}
		w.clock.Step(time.Minute)
		w.pass()
		w.wantCalls(contract.ActionReconcile)
		if s := w.stored().Status; s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want jobIDFinished 1", s)
		}
	})
	t.Run("a pending outcome does not finish a newer job", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fail = func(string, client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInternalError(errBoom)
			}
			return nil
		}
		w.pass()
		w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.JobID = "1", "2" })
		if got := w.pass().Queue.RequeueAfter; got != 1 {
			t.Errorf("after the pending write: got the requeue after %s, want it immediately", got)
		}
		if s := w.stored().Status; s.JobIDFinished != "1" || s.JobID != "2" {
			t.Errorf("status = %+v, want jobIDFinished 1 and jobID 2", s)
		}
		w.pass()
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
	})
	t.Run("a status that the API server rejects ends the run with the reason", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		n := 0
		w.fail = func(request string, _ client.Object) error {
			if n++; n == 2 {
				return apierrors.NewInvalid(lsv1alpha1.SchemeGroupVersion.WithKind("DeployItem").GroupKind(), key.Name, nil)
			}
			return nil
		}
		w.pass()
		if s := w.stored().Status; s.Phase != phases.Failed || s.LastError == nil || s.LastError.Reason != "StatusRefused" {
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
	start := func(t *testing.T, stored change) *world {
		w := newWorld(t, items(stored), func(w *world, _ *deployerlib.DeployerArgs) { w.fake.Hook(spoils, extension.ShouldReconcileHook) })
		w.fail = func(string, client.Object) error {
			w.fail = nil
			return invalid
		}
		return w
	}
	t.Run("a rejected status of a hook in a run is shown in the run", func(t *testing.T) {
		w := start(t, job("1"))
		w.pass()
		s := w.stored().Status
		if s.Phase != phases.Init || s.LastError == nil || contract.GetCondition(s.Conditions, "Spoilt") != nil {
			t.Errorf("status = %+v, want phase Init, a lastError and no condition Spoilt", s)
		}
		w.wantCalls()
	})
	t.Run("a rejected status of a hook of an item with nothing to do is shown in a condition", func(t *testing.T) {
		w := start(t, finishedJob("1", phases.Succeeded))
		w.pass()
		s := w.stored().Status
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
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			vandalise(&in.Item.Status)
			in.Item.Status.Phase = phases.Failed
			in.Item.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			if err := deployerlib.Checkpoint(ctx); err != nil {
				t.Error(err)
			}
			if s := w.stored().Status; s.Phase != phases.Init || s.JobID != "1" || s.ProviderStatus == nil || s.ObservedGeneration != 1 {
				t.Errorf("stored: %+v", s)
			}
			in.Item.Status.Phase = phases.Init
			return nil
		})
		w.pass()
	})
	t.Run("Checkpoint reports that the job is no longer current", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			w.update(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Failed })
			in.Item.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			err := deployerlib.Checkpoint(ctx)
			if !errors.Is(err, deployerlib.ErrSuperseded) {
				t.Errorf("error = %v, want %v", err, deployerlib.ErrSuperseded)
			}
			return err
		})
		w.pass()
		s := w.stored().Status
		if s.ProviderStatus == nil || s.Phase != phases.Failed || s.LastError != nil {
			t.Errorf("status = %+v, want a providerStatus, phase Failed and no lastError", s)
		}
	})
	t.Run("Checkpoint rejects a provider status that cannot be stored", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			poison(&in.Item.Status)
			err := deployerlib.Checkpoint(ctx)
			if err == nil {
				t.Error("no error")
			}
			return err
		})
		w.pass()
	})
	t.Run("a provider status that does not fit into the item ends the run [D11]", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
			in.Item.Status.ProviderStatus = raw(map[string]any{"apiVersion": "v1", "kind": "Half"})
			w.fail = func(string, client.Object) error {
				return apierrors.NewInternalError(errors.New("etcdserver: request is too large"))
			}
			err := deployerlib.Checkpoint(ctx)
			w.fail = nil
			return fmt.Errorf("note what is about to be written: %w", err)
		})
		w.pass()
		s := w.stored().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want phase Failed and jobIDFinished 1", s)
		}
		if e := s.LastError; e == nil || e.Reason != "StatusTooLarge" || !slices.Contains(e.Codes, lsv1alpha1.ErrorConfigurationProblem) {
			t.Errorf("error %+v", e)
		}
	})
	t.Run("Checkpoint keeps all fields of the caller's copy", func(t *testing.T) {
		w := newWorld(t, items(job("1")))
		w.fake.On(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
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
		w.pass()
	})
}
