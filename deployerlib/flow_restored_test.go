// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// swappableClient is a client whose fake API server can be replaced by another one with different objects.
type swappableClient struct{ client.WithWatch }

// useSwappableClient replaces the client of a world with a swappable client, so that a test can call the method
// `restore`.
func useSwappableClient(w *testEnv) *swappableClient {
	s := &swappableClient{WithWatch: w.client}
	w.client = s
	w.startEngine()
	return s
}

// replaceObjects simulates a restore of etcd from a backup. It replaces the objects of the API server by one item.
// Resource versions begin again at 100.
func (s *swappableClient) replaceObjects(w *testEnv, changes ...itemOption) *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := newItem(changes...)
	di.ResourceVersion = "100"
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	s.WithWatch = fake.NewClientBuilder().WithScheme(newScheme(w.t)).WithObjects(di, lsCtx).
		WithStatusSubresource(&lsv1alpha1.DeployItem{}).WithInterceptorFuncs(w.newInterceptors()).Build()
	return w.getItem()
}

// reconcileForMinute reconciles the item as often as the queue would in one minute.
func (w *testEnv) reconcileForMinute() {
	w.t.Helper()
	for end := w.clock.Now().Add(time.Minute); w.clock.Now().Before(end); {
		res := w.reconcile()
		if res.RequeueAfter == 0 {
			return
		}
		w.clock.Step(res.RequeueAfter)
	}
}

func TestRestoredEtcd(t *testing.T) {
	t.Parallel()
	finishedNow := func(w *testEnv) {
		w.t.Helper()
		if s := w.getItem().Status; s.Phase != phases.Succeeded || s.JobIDFinished != s.JobID {
			w.t.Errorf("status = %+v, want phase Succeeded and a finished job", s)
		}
	}
	version := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "5000" }
	t.Run("a finished item starts its next job after the restore [F60]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), version))
		s := useSwappableClient(w)
		w.reconcile()
		before := w.getItem()
		if !w.HandleUpdate(before, s.replaceObjects(w, withJob("1"))) {
			t.Error("the older version does not lead to a reconcile")
		}
		w.popRequests()
		w.reconcileForMinute()
		finishedNow(w)
		w.expectCalls(contract.ActionReconcile, contract.ActionReconcile)
		w.expectRequests("get", "get", "patch status", "patch status") // two live reads prove that resource versions went backwards
		w.HandleUpdate(nil, w.updateItem(withJob("2")))
		w.reconcileForMinute()
		finishedNow(w)
	})
	t.Run("a call that was running at the time of the backup finishes its job after the restore [F60]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), version))
		s := useSwappableClient(w)
		w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if w.fake.CountCalls(key, contract.ActionReconcile) == 1 {
				s.replaceObjects(w, withRunningJob("1", 0))
			}
			return nil
		})
		w.reconcile()
		w.reconcileForMinute()
		finishedNow(w)
		w.expectCalls(contract.ActionReconcile)
	})
	t.Run("a call that started after the backup finishes its job after the restore [F60]", func(t *testing.T) {
		w := newTestEnv(t, newItems(withJob("1"), version))
		s := useSwappableClient(w)
		w.fake.QueueAnswers(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if w.fake.CountCalls(key, contract.ActionReconcile) == 1 {
				s.replaceObjects(w, withJob("1"))
			}
			return nil
		})
		w.reconcile()
		w.reconcileForMinute()
		finishedNow(w)
		w.expectCalls(contract.ActionReconcile)
	})
}
