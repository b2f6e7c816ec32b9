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

// minimal is a deployer that implements only the methods that Base does not provide [L1].
type minimal struct {
	deployerlib.Base

	reconciled *int
}

func (m minimal) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	*m.reconciled++
	return nil
}

func (minimal) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

// old is a deployer whose method ExtensionHooks does not have the signature of Deployer.
type old struct{ *landscapertest.Fake }

// ExtensionHooks returns a type that Port does not support.
func (old) ExtensionHooks() map[string]int { return nil }

func TestBase(t *testing.T) {
	reconciled := 0
	with := withArgs(func(args *deployerlib.DeployerArgs) { args.Deployer = minimal{reconciled: &reconciled} })
	t.Run("Base calls Reconcile for force-reconcile", func(t *testing.T) {
		w := newWorld(t, items(finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation)), with)
		w.pass()
		if reconciled != 1 || len(w.stored().Annotations) != 0 {
			t.Errorf("reconciled %d times, annotations %v", reconciled, w.stored().Annotations)
		}
	})
	t.Run("Base ends an aborted run with the phase Failed", func(t *testing.T) {
		w := newWorld(t, items(running(0), operation(contract.AbortOperation)), with)
		w.pass()
		if p := w.stored().Status.Phase; p != phases.Failed {
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
	run := func(c ...change) {
		t.Helper()
		w := newWorld(t, items(c...), withArgs(func(args *deployerlib.DeployerArgs) {
			args.Deployer = deployerlib.Port(old{fake}, deployerlib.PortedHooks{extension.BeforeReconcileHook: {hook}, extension.BeforeAbortHook: {hook}})
		}))
		w.pass()
	}
	run(job("1"))
	run(finished(phases.Succeeded), operation(lsv1alpha1.ForceReconcileOperation))
	run(running(0), operation(contract.AbortOperation))
	run(finishedJob("1", phases.Succeeded), job("2"), deleted)
	got := []contract.Action{}
	for _, call := range fake.Calls(key) {
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
		args := deployerlib.DeployerArgs{Type: testType, Deployer: deployerlib.Port(old{fake}, deployerlib.PortedHooks{extension.EndHook: {nil}})}
		args.Default()
		if args.Validate() == nil {
			t.Error("no error")
		}
	})
}

func TestResumeCalls(t *testing.T) {
	resuming := func(w *world, args *deployerlib.DeployerArgs) { args.Deployer = landscapertest.Resuming{Fake: w.fake} }
	t.Run("Resume is called once for a finished item, without a write", func(t *testing.T) {
		w := newWorld(t, append(items(finishedJob("1", phases.Succeeded), withTarget), target("x")), resuming)
		w.pass()
		w.pass()
		w.wantCalls(landscapertest.ActionResume)
		w.wantSent()
		if !w.fake.Calls(key)[0].HasTarget {
			t.Error("no target")
		}
	})
	t.Run("Resume is called again after an error", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), resuming)
		w.fake.On(landscapertest.ActionResume, landscapertest.Fail(errBoom), landscapertest.Panic("x"))
		for range 4 {
			w.pass()
		}
		w.wantCalls(landscapertest.ActionResume, landscapertest.ActionResume, landscapertest.ActionResume)
	})
	t.Run("Resume is not called for an item that runs or is being deleted", func(t *testing.T) {
		for _, changes := range [][]change{{job("1")}, {finishedJob("1", phases.Succeeded), deleted}, {job("1"), paused}} {
			w := newWorld(t, items(changes...), resuming)
			w.pass()
			if w.fake.Count(key, landscapertest.ActionResume) != 0 {
				t.Error("resumed")
			}
		}
	})
	t.Run("Resume is called for a paused item with nothing to do [Yx2]", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded), paused), resuming)
		w.pass()
		w.wantCalls(landscapertest.ActionResume)
	})
	t.Run("changes of Resume to the item are dropped", func(t *testing.T) {
		w := newWorld(t, items(finishedJob("1", phases.Succeeded)), resuming)
		w.fake.On(landscapertest.ActionResume, landscapertest.Change(vandalise))
		w.pass()
		w.wantSent()
	})
}
