// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"errors"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/extension"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// newEngineWithCache returns an engine with a client, and with a function that reads items from the cache.
func (w *testEnv) newEngineWithCache(c client.Client, cached func(context.Context, types.NamespacedName) (*lsv1alpha1.DeployItem, error)) *deployerlib.Engine {
	w.t.Helper()
	engine, err := deployerlib.NewEngine(deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: w.fake, Clock: w.clock, Registerer: prometheus.NewRegistry(),
		LeaderElection: true,
	}, deployerlib.Access{Client: c, Warn: w.recordWarning, Items: cached})
	if err != nil {
		w.t.Fatal(err)
	}
	return engine
}

// TestDeletesOnceWhileTheCacheLags checks that Delete is called only once. The response to the removal of the last
// finalizer has the same resourceVersion as the cached item, so the cached item does not look old.
func TestDeletesOnceWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t, newItems(withFinishedRun(phases.Succeeded), withDeletion))
	var shown *lsv1alpha1.DeployItem // the version in the cache, which is not newer than the start of the deletion
	w.fake.QueueAnswers(contract.ActionDelete, func(context.Context, landscapertest.Input) error {
		shown = w.getItem()
		return nil
	})
	asServer := interceptor.NewClient(w.client, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, obj, p, opts...)
			if err == nil && obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
				obj.SetResourceVersion(shown.ResourceVersion)
			}
			return err
		},
	})
	engine := w.newEngineWithCache(asServer, func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
		if shown != nil {
			return shown, nil
		}
		return w.getCached(ctx, key)
	})
	engine.RunAttempt(t.Context(), key)
	engine.RunAttempt(t.Context(), key)
	if w.getItem() != nil {
		t.Error("the item is still there")
	}
	w.expectCalls(contract.ActionDelete)
}

// TestItemIsGoneWhileTheCacheLags checks that a deployer is not called for an item that does not exist any more. This
// happens after another process has deleted the item. A call would create objects that no item knows.
func TestItemIsGoneWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]itemOption{
		"a job has not begun [Z1]":                            {withJob("1")},
		"another process has begun the job [Z1]":              {withRunningJob("1", 0)},
		"a deletion has not begun [Z1]":                       {withFinishedJob("1", phases.Succeeded), withJob("2"), withDeletion},
		"a job has not begun in the annotation revision [Z1]": nil,
		"another process has begun the run [Z1]":              {withRun(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestEnv(t, newItems(changes...))
			shown := w.getItem()
			engine := w.newEngineWithCache(w.client, func(context.Context, types.NamespacedName) (*lsv1alpha1.DeployItem, error) { return shown, nil })
			gone := shown.DeepCopy()
			gone.Finalizers = nil
			if err := w.client.Update(t.Context(), gone); err != nil {
				t.Fatal(err)
			}
			if err := w.client.Delete(t.Context(), gone); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			for range 3 {
				w.clock.Step(time.Minute)
				engine.RunAttempt(t.Context(), key)
			}
			w.expectCalls()
		})
	}
}

// TestBackgroundRunOfNewLeader checks that a new leader begins a background run only with the newest version of the item.
// With an older version, the deployer would use an old inventory, and its outcome would replace the newer inventory. The
// process checks the version only before its first background run of an item.
func TestBackgroundRunOfNewLeader(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t, newItems(withFinishedJob("1", phases.Succeeded), withProviderStatus), withHooks(extension.ShouldReconcileHook))
	w.setHookResult(extension.ShouldReconcileHook, newHookResult(false, 0), nil)
	w.fake.QueueAnswers(contract.ActionReconcile, landscapertest.ReturnError(deployerlib.ErrUnchanged), landscapertest.ReturnError(deployerlib.ErrUnchanged))
	shown := w.getItem()
	engine := w.newEngineWithCache(w.client, func(context.Context, types.NamespacedName) (*lsv1alpha1.DeployItem, error) { return shown, nil })
	newest := w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Labels = map[string]string{"of": "the former leader"} })

	for range 3 {
		w.clock.Step(time.Minute)
		engine.RunAttempt(t.Context(), key)
	}
	w.expectCalls()

	shown = newest
	w.popRequests()
	for range 2 {
		w.clock.Step(time.Minute)
		engine.RunAttempt(t.Context(), key)
	}
	w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
	w.expectRequests("patch")
}

// TestCheckpointOfRemovedItem checks that Checkpoint stops a call whose item is removed. Otherwise, the objects that the
// call creates would stay.
func TestCheckpointOfRemovedItem(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t, newItems(withJob("1")))
	cached := w.getItem()
	w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, in landscapertest.Input) error {
		last := w.updateItem(func(di *lsv1alpha1.DeployItem) { di.Finalizers = nil })
		if err := w.client.Delete(withoutRecording(ctx), last); err != nil {
			t.Error(err)
		}
		in.Item.Status.ProviderStatus = toRaw(map[string]any{"apiVersion": "v1", "kind": "Status"})
		err := deployerlib.Checkpoint(ctx)
		if !errors.Is(err, deployerlib.ErrSuperseded) {
			t.Errorf("Checkpoint returned %v, want ErrSuperseded", err)
		}
		return err
	})
	engine := w.newEngineWithCache(w.client, func(context.Context, types.NamespacedName) (*lsv1alpha1.DeployItem, error) { return cached, nil })
	engine.RunAttempt(t.Context(), key)
	w.expectCalls(contract.ActionReconcile, contract.ActionAbort)
}

// TestLostResponseWhileTheCacheLags tests an outcome that the API server stores, although the response to the write is
// lost. After a live read has shown that the outcome is stored, the library must not act on an older version in the
// cache.
func TestLostResponseWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]itemOption{"annotation": nil, "job ID": withJob("1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := []itemOption{}
			if stored != nil {
				changes = append(changes, stored)
			}
			w := newTestEnv(t, newItems(changes...))
			w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				shown := w.getItem()
				w.transformCached = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return shown }
				w.afterRequest = func(string, client.Object) error { return errBoom }
				return nil
			})
			w.runAttempt()
			w.afterRequest = nil
			for range 3 { // first the pending write is confirmed, and then the cache is too old to act on
				w.clock.Step(time.Minute)
				w.runAttempt()
			}
			if s := w.getItem().Status; s.Phase != phases.Succeeded {
				t.Errorf("phase = %q, want %q", s.Phase, phases.Succeeded)
			}
			w.expectCalls(contract.ActionReconcile)
		})
	}
}

// TestLostErrorWhileTheCacheLags tests an error that the API server stores, although the response to the write is lost.
// The next attempt begins with an older version. The outcome of that attempt must remove both the error and the
// condition Waiting.
func TestLostErrorWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]error{"an error": errBoom, "a wait": deployerlib.WaitFor("a pod", time.Second)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestEnv(t, newItems(withJob("1")))
			w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				shown := w.getItem()
				w.transformCached = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return shown }
				w.afterRequest = func(request string, _ client.Object) error {
					if request == "get" {
						return nil
					}
					return errBoom
				}
				return first
			})
			w.reconcile()
			w.afterRequest = nil
			s := w.getItem().Status
			if s.LastError == nil && contract.GetCondition(s.Conditions, contract.ConditionWaiting) == nil {
				t.Fatalf("nothing was stored: %+v", s)
			}
			for range 3 {
				w.clock.Step(time.Minute)
				w.reconcile()
			}
			s = w.getItem().Status
			if s.Phase != phases.Succeeded || s.LastError != nil || contract.GetCondition(s.Conditions, contract.ConditionWaiting) != nil {
				t.Errorf("status = %+v, want phase Succeeded, no lastError and no condition Waiting", s)
			}
			w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
		})
	}
}

// TestStaleReadAfterConflict tests a stale response to the live read after a conflict. Such a response proves neither
// that the item is gone nor that the run belongs to another deployer.
func TestStaleReadAfterConflict(t *testing.T) {
	t.Parallel()
	for name, past := range map[string]itemOption{
		"version of an earlier item with the same name": func(di *lsv1alpha1.DeployItem) { di.UID = "uid-0" },
		"version of the previous job":                   func(di *lsv1alpha1.DeployItem) { di.Status.JobID, di.Status.JobIDFinished = "0", "0" },
		"version of this job before its start":          func(di *lsv1alpha1.DeployItem) { di.Status.Phase, di.Status.LastReconcileTime = "", nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTestEnv(t, newItems(withJob("1")))
			conflicts, old := 1, 1
			w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
				w.beforeRequest = func(request string, _ client.Object) error {
					if conflicts == 0 || request == "get" {
						return nil
					}
					conflicts--
					return newConflict()
				}
				w.afterRequest = func(request string, obj client.Object) error {
					if di, ok := obj.(*lsv1alpha1.DeployItem); ok && request == "get" && old > 0 {
						old--
						past(di)
						di.ResourceVersion = "1"
					}
					return nil
				}
				return nil
			})
			for range 4 {
				w.reconcile()
				w.clock.Step(time.Minute)
			}
			if conflicts != 0 || old != 0 {
				t.Fatalf("%d conflicts and %d stale responses were not used", conflicts, old)
			}
			if s := w.getItem().Status; s.Phase != phases.Succeeded || s.JobIDFinished != "1" {
				t.Errorf("status = %+v, want phase Succeeded and jobIDFinished 1", s)
			}
			w.expectCalls(contract.ActionReconcile)
		})
	}
}

// TestHookTimeLimitDoesNotCancelCall checks that for an item without a timeout, the time limit of hooks does not cancel
// the call [H-2].
func TestHookTimeLimitDoesNotCancelCall(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t, newItems(withJob("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{} }))
	w.fake.QueueAnswers(contract.ActionReconcile, func(ctx context.Context, _ landscapertest.Input) error {
		w.clock.Step(time.Hour)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
			return nil
		}
	})
	w.runAttempt()
	if s := w.getItem().Status; s.Phase != phases.Succeeded {
		t.Errorf("phase %q, error %+v", s.Phase, s.LastError)
	}
}
