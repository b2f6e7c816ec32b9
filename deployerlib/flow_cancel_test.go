// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// pendingReconcile is a reconcile that runs in the background.
type pendingReconcile struct {
	w    *testEnv
	done chan reconcile.Result
}

// startReconcile starts a reconcile of the item in the background, as if the item were taken from the queue.
func (w *testEnv) startReconcile(ctx context.Context) pendingReconcile {
	p := pendingReconcile{w: w, done: make(chan reconcile.Result, 1)}
	go func() {
		res, err := w.Reconcile(ctx, key)
		if err != nil {
			w.t.Errorf("Reconcile returned an error, which it never does: %v", err)
		}
		p.done <- res
	}()
	return p
}

// wait waits for the reconcile to end and returns its result.
func (p pendingReconcile) wait() reconcile.Result {
	p.w.t.Helper()
	select {
	case res := <-p.done:
		return res
	case <-time.After(20 * time.Second):
		p.w.t.Fatal("the reconcile did not end")
		return reconcile.Result{}
	}
}

// waitForCall waits until the n-th call of an action has begun.
func (w *testEnv) waitForCall(action contract.Action, n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	if _, err := w.fake.WaitForCall(ctx, key, action, n); err != nil {
		w.t.Fatal(err)
	}
}

// stepWhenWaiting waits until the given number of timers run, and then advances the clock by d.
func (w *testEnv) stepWhenWaiting(waiters int, d time.Duration) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for w.clock.Waiters() < waiters {
		select {
		case <-deadline:
			w.t.Fatalf("%d timers run, want %d", w.clock.Waiters(), waiters)
		case <-tick.C:
		}
	}
	w.clock.Step(d)
}

func TestCancelledCalls(t *testing.T) {
	t.Run("abort cancels the call, then Abort runs and the item fails [C4] [L31]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withOperation(lsv1alpha1.ReconcileOperation)))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		w.HandleEvent(w.updateItem(withOperation(contract.AbortOperation)))
		if res := p.wait(); res.RequeueAfter != 1 {
			t.Errorf("got the requeue after %s, want it immediately", res.RequeueAfter)
		}
		if s := w.getItem().Status; s.LastError != nil {
			t.Errorf("the cancellation became the item's error: %+v", s.LastError)
		}
		w.reconcile()
		w.expectCalls(contract.ActionReconcile, contract.ActionAbort)
		call := w.fake.ListCalls(key)[0]
		if !errors.Is(call.Cause, deployerlib.ErrAborted) {
			t.Errorf("cause = %v, want %v", call.Cause, deployerlib.ErrAborted)
		}
		if di := w.getItem(); di.Status.Phase != phases.Failed || di.Status.LastError.Reason != contract.AbortedReason || len(di.Annotations) != 0 {
			t.Errorf("annotations %v, status %+v", di.Annotations, di.Status)
		}
	})
	t.Run("an interrupt cancels the call, Abort runs, and only the provider status is written", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.RunInOrder(landscapertest.UpdateStatus(func(s *lsv1alpha1.DeployItemStatus) {
			s.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Kept"})
			s.Phase = phases.Progressing
		}), landscapertest.BlockUntilCancelled()))
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Status.JobIDFinished, di.Status.Phase = "1", phases.Failed }))
		p.wait()
		w.expectCalls(contract.ActionReconcile, contract.ActionAbort)
		if !errors.Is(w.fake.ListCalls(key)[0].Cause, deployerlib.ErrInterrupted) {
			t.Errorf("cause = %v, want %v", w.fake.ListCalls(key)[0].Cause, deployerlib.ErrInterrupted)
		}
		if s := w.getItem().Status; s.Phase != phases.Failed || s.ProviderStatus == nil || s.LastError != nil {
			t.Errorf("status = %+v, want phase Failed, a providerStatus and no lastError", s)
		}
	})
	t.Run("the deadline cancels the call and fails the item, and Abort does not run", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		w.clock.Step(contract.DefaultTimeout)
		p.wait()
		w.expectCalls(contract.ActionReconcile)
		s := w.getItem().Status
		if s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError.Reason != lsv1alpha1.ProgressingTimeoutReason || !slices.Equal(s.LastError.Codes, []lsv1alpha1.ErrorCode{lsv1alpha1.ErrorTimeout}) {
			t.Errorf("status %+v, error %+v", s, s.LastError)
		}
		if !errors.Is(w.fake.ListCalls(key)[0].Cause, deployerlib.ErrDeadline) {
			t.Errorf("cause = %v, want %v", w.fake.ListCalls(key)[0].Cause, deployerlib.ErrDeadline)
		}
	})
	t.Run("a cancelled call that returns nil is not finished", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		w.clock.Step(contract.DefaultTimeout)
		close(release)
		p.wait()
		if s := w.getItem().Status; s.Phase != phases.Failed {
			t.Errorf("phase = %q, want %q", s.Phase, phases.Failed)
		}
	})
	t.Run("the removal of the item cancels the call", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil })
		if err := w.client.Delete(t.Context(), newItem()); err != nil {
			t.Fatal(err)
		}
		w.HandleDelete(newItem())
		p.wait()
		w.reconcile()
		if w.NumItems() != 0 {
			t.Error("the item is still remembered")
		}
	})
	t.Run("events without a relevant change do not cancel the call", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntil(release))
		p := w.startReconcile(t.Context())
		w.waitForCall(contract.ActionReconcile, 1)
		if w.HandleEvent(w.getItem()) {
			t.Error("the library's own write leads to a reconcile")
		}
		w.HandleEvent(w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"a": "b"} }))
		close(release)
		p.wait()
		if call := w.fake.ListCalls(key)[0]; call.Cause != nil {
			t.Errorf("cause = %v, want nil", call.Cause)
		}
		if s := w.getItem().Status; s.JobIDFinished != "1" {
			t.Errorf("status = %+v, want jobIDFinished 1", s)
		}
	})
}

func TestShutdown(t *testing.T) {
	t.Run("a shutdown lets the call return within the grace period", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		release := make(chan struct{})
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntil(release))
		ctx, cancel := context.WithCancel(t.Context())
		p := w.startReconcile(ctx)
		w.waitForCall(contract.ActionReconcile, 1)
		cancel()
		close(release)
		p.wait()
		if s := w.getItem().Status; s.Phase != phases.Succeeded || w.fake.ListCalls(key)[0].Cause != nil {
			t.Errorf("phase %q, cause %v", s.Phase, w.fake.ListCalls(key)[0].Cause)
		}
	})
	t.Run("a shutdown cancels the call after the grace period, and the job stays unfinished without an error", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockUntilCancelled())
		ctx, cancel := context.WithCancel(t.Context())
		p := w.startReconcile(ctx)
		w.waitForCall(contract.ActionReconcile, 1)
		cancel()
		w.stepWhenWaiting(2, deployerlib.DefaultGracePeriod) // the timers of the deadline and of the grace period
		p.wait()
		s := w.getItem().Status
		if !errors.Is(w.fake.ListCalls(key)[0].Cause, deployerlib.ErrShutdown) || s.Phase != phases.Init || s.LastError != nil || s.JobIDFinished != "" {
			t.Errorf("cause %v, status %+v", w.fake.ListCalls(key)[0].Cause, s)
		}
	})
	t.Run("no reconcile starts after a shutdown", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1")))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.startReconcile(ctx).wait()
		w.expectCalls()
	})
}

func TestCallThatIgnoresCancellation(t *testing.T) {
	release := make(chan struct{})
	w := newTestEnv(t, newItems(withJob("1")))
	w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.BlockIgnoringContext(release))
	p := w.startReconcile(t.Context())
	w.waitForCall(contract.ActionReconcile, 1)
	w.clock.Step(contract.DefaultTimeout)
	w.stepWhenWaiting(1, deployerlib.DefaultGracePeriod)
	p.wait() // the worker is free although the call still runs
	s := w.getItem().Status
	if s.Phase != phases.Failed || s.JobIDFinished != "1" || s.LastError == nil || s.LastError.Reason != "CancellationIgnored" {
		t.Errorf("status %+v, error %+v", s, s.LastError)
	}
	w.updateItem(withJob("2"))
	w.reconcile()
	w.expectCalls(contract.ActionReconcile) // there is no second call while the first one still runs
	if !w.IsQuarantined(key) {
		t.Fatal("the item is not quarantined")
	}
	close(release)
	deadline := time.After(20 * time.Second)
	for w.IsQuarantined(key) {
		select {
		case <-deadline:
			t.Fatal("the quarantine was not lifted when the call returned")
		case <-time.After(time.Millisecond):
		}
	}
	w.reconcile()
	w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	if s := w.getItem().Status; s.JobIDFinished != "2" || s.Phase != phases.Succeeded {
		t.Errorf("status = %+v, want jobIDFinished 2 and phase Succeeded", s)
	}
	if faults := w.fake.OverlappingCalls(); len(faults) > 0 {
		t.Errorf("faults = %v, want none", faults)
	}
}

func TestAbort(t *testing.T) {
	abort := withOperation(contract.AbortOperation)
	t.Run("errors of Abort are retried until the deadline, and then the item fails", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(0), abort))
		w.fake.SetDefaultAnswer(contract.ActionAbort, landscapertest.ReturnError(errBoom))
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Progressing || s.LastError == nil {
			t.Errorf("status = %+v, want phase Progressing and a lastError", s)
		}
		w.clock.Step(contract.AbortTimeout)
		w.runAttempt()
		if s := w.getItem().Status; s.Phase != phases.Failed || s.LastError.Reason != contract.AbortingTimeoutReason {
			t.Errorf("status %+v, error %+v", s, s.LastError)
		}
		w.expectCalls(contract.ActionAbort)
	})
	t.Run("a withdrawn abort does not shorten the deadline of the next abort", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(0), abort))
		w.fake.SetDefaultAnswer(contract.ActionAbort, landscapertest.ReturnError(errBoom)).SetDefaultAnswer(contract.ActionReconcile, landscapertest.SetPhase(phases.Progressing))
		w.runAttempt()
		w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Annotations = nil })
		w.runAttempt()
		w.clock.Step(contract.AbortTimeout + time.Minute)
		w.updateItem(abort)
		w.runAttempt()
		w.expectCalls(contract.ActionAbort, contract.ActionReconcile, contract.ActionAbort)
		if s := w.getItem().Status; s.Phase != phases.Progressing {
			t.Errorf("phase %q, error %+v", s.Phase, s.LastError)
		}
	})
	t.Run("Abort is called without a context and a target", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(0), abort, withTarget, func(di *lsv1alpha1.DeployItem) { di.Spec.Context = "gone" }))
		w.runAttempt()
		call := w.fake.ListCalls(key)[0]
		if call.Action != contract.ActionAbort || call.HasContext || call.HasTarget {
			t.Errorf("call %+v", call)
		}
	})
	t.Run("Abort runs although the deadline of the run has passed", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(-time.Hour), abort))
		w.runAttempt()
		w.expectCalls(contract.ActionAbort)
	})
}
