// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// minimalDeployer is a deployer that implements only the methods that Base does not provide [L1].
type minimalDeployer struct {
	deployerlib.Base

	reconciled *int
}

func (m minimalDeployer) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	*m.reconciled++
	return nil
}

func (minimalDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// oldHooksDeployer is a deployer whose method ExtensionHooks does not have the signature of Deployer.
type oldHooksDeployer struct{ *landscapertest.Fake }

// ExtensionHooks returns a type that Port does not support.
func (oldHooksDeployer) ExtensionHooks() map[string]int { return nil }

func TestBase(t *testing.T) {
	reconciled := 0
	with := withArgs(func(args *deployerlib.DeployerArgs) { args.Deployer = minimalDeployer{reconciled: &reconciled} })
	t.Run("Base calls Reconcile for force-reconcile", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation)), with)
		w.runAttempt()
		if reconciled != 1 || len(w.getItem().Annotations) != 0 {
			t.Errorf("reconciled %d times, annotations %v", reconciled, w.getItem().Annotations)
		}
	})
	t.Run("Base ends an aborted run with the phase Failed", func(t *testing.T) {
		w := newTestEnv(t, newItems(withRun(0), withOperation(contract.AbortOperation)), with)
		w.runAttempt()
		if p := w.getItem().Status.Phase; p != phases.Failed {
			t.Errorf("phase = %q, want %q", p, phases.Failed)
		}
	})
}

func TestPort(t *testing.T) {
	fake := landscapertest.NewFake()
	var types []extension.HookType
	hook := func(_ context.Context, di *lsv1alpha1.DeployItem, _ *lsv1alpha1.Target, t extension.HookType) (*extension.HookResult, error) {
		types = append(types, t)
		return nil, nil
	}
	run := func(c ...itemOption) {
		t.Helper()
		w := newTestEnv(t, newItems(c...), withArgs(func(args *deployerlib.DeployerArgs) {
			args.Deployer = deployerlib.Port(oldHooksDeployer{fake}, deployerlib.PortedHooks{extension.BeforeReconcileHook: {hook}, extension.BeforeAbortHook: {hook}})
		}))
		w.runAttempt()
	}
	run(withJob("1"))
	run(withFinishedRun(phases.Succeeded), withOperation(lsv1alpha1.ForceReconcileOperation))
	run(withRun(0), withOperation(contract.AbortOperation))
	run(withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion)
	got := []contract.Action{}
	for _, call := range fake.ListCalls(key) {
		got = append(got, call.Action)
	}
	want := []contract.Action{contract.ActionReconcile, contract.ActionReconcile, contract.ActionAbort, contract.ActionDelete}
	for i := range want {
		if len(got) != len(want) || got[i] != want[i] {
			t.Fatalf("calls %v, want %v", got, want)
		}
	}
	if len(types) != 2 || types[0] != extension.BeforeReconcileHook || types[1] != extension.BeforeAbortHook {
		t.Errorf("hooks ran for %v", types)
	}
	t.Run("Add reports a nil hook and does not panic [L67]", func(t *testing.T) {
		args := deployerlib.DeployerArgs{Type: testType, Deployer: deployerlib.Port(oldHooksDeployer{fake}, deployerlib.PortedHooks{extension.EndHook: {nil}})}
		args.Default()
		if args.Validate() == nil {
			t.Error("no error")
		}
	})
}

func TestResumeCalls(t *testing.T) {
	resuming := func(w *testEnv, args *deployerlib.DeployerArgs) {
		args.Deployer = landscapertest.Resuming{Fake: w.fake}
	}
	t.Run("Resume is called once for a finished item, without a write", func(t *testing.T) {
		w := newTestEnv(t, append(newItems(withFinishedJob("1", phases.Succeeded), withTarget), newTarget("x")), resuming)
		w.runAttempt()
		w.runAttempt()
		w.expectCalls(landscapertest.ActionResume)
		w.expectRequests()
		if !w.fake.ListCalls(key)[0].HasTarget {
			t.Error("no target")
		}
	})
	t.Run("Resume is called again after an error", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), resuming)
		w.fake.QueueAnswers(landscapertest.ActionResume, landscapertest.ReturnError(errBoom), landscapertest.Panic("x"))
		for range 4 {
			w.runAttempt()
		}
		w.expectCalls(landscapertest.ActionResume, landscapertest.ActionResume, landscapertest.ActionResume)
	})
	t.Run("Resume is not called for an item that runs or is being deleted", func(t *testing.T) {
		for _, changes := range [][]itemOption{{withJob("1")}, {withFinishedJob("1", phases.Succeeded), withDeletion}, {withJob("1"), withPause}} {
			w := newTestEnv(t, newItems(changes...), resuming)
			w.runAttempt()
			if w.fake.CountCalls(key, landscapertest.ActionResume) != 0 {
				t.Error("resumed")
			}
		}
	})
	t.Run("Resume is called for a paused item with nothing to do [Yx2]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withPause), resuming)
		w.runAttempt()
		w.expectCalls(landscapertest.ActionResume)
	})
	t.Run("changes of Resume to the item are dropped", func(t *testing.T) {
		w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded)), resuming)
		w.fake.QueueAnswers(landscapertest.ActionResume, landscapertest.UpdateStatus(setProtectedFields))
		w.runAttempt()
		w.expectRequests()
	})
}
