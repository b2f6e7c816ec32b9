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

// swappable is a client whose fake API server can be replaced by another one with different objects.
type swappable struct{ client.WithWatch }

// restorable replaces the client of a world with a swappable client, so that a test can call the method `restore`.
func restorable(w *world) *swappable {
	s := &swappable{WithWatch: w.client}
	w.client = s
	w.boot()
	return s
}

// restore simulates a restore of etcd from a backup. It replaces the objects of the API server by one item. Resource
// versions begin again at 100.
func (s *swappable) restore(w *world, changes ...change) *lsv1alpha1.DeployItem {
	w.t.Helper()
	di := item(changes...)
	di.ResourceVersion = "100"
	scheme, err := landscapertest.Scheme()
	if err != nil {
		w.t.Fatal(err)
	}
	lsCtx := &lsv1alpha1.Context{}
	lsCtx.Namespace, lsCtx.Name = ns, lsv1alpha1.DefaultContextName
	s.WithWatch = fake.NewClientBuilder().WithScheme(scheme).WithObjects(di, lsCtx).
		WithStatusSubresource(&lsv1alpha1.DeployItem{}).WithInterceptorFuncs(w.interceptors()).Build()
	return w.stored()
}

// forAMinute reconciles the item as often as the queue would in one minute.
func (w *world) forAMinute() {
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
	finishedNow := func(w *world) {
		w.t.Helper()
		if s := w.stored().Status; s.Phase != phases.Succeeded || s.JobIDFinished != s.JobID {
			w.t.Errorf("status = %+v, want phase Succeeded and a finished job", s)
		}
	}
	version := func(di *lsv1alpha1.DeployItem) { di.ResourceVersion = "5000" }
	t.Run("a finished item starts its next job after the restore [F60]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), version))
		s := restorable(w)
		w.reconcile()
		before := w.stored()
		if !w.Update(before, s.restore(w, job("1"))) {
			t.Error("the older version does not lead to a reconcile")
		}
		w.sent()
		w.forAMinute()
		finishedNow(w)
		w.wantCalls(contract.ActionReconcile, contract.ActionReconcile)
		w.wantSent("get", "get", "patch status", "patch status") // two live reads prove that resource versions went backwards
		w.Update(nil, w.update(job("2")))
		w.forAMinute()
		finishedNow(w)
	})
	t.Run("a call that was running at the time of the backup finishes its job after the restore [F60]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), version))
		s := restorable(w)
		w.fake.On(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if w.fake.Count(key, contract.ActionReconcile) == 1 {
				s.restore(w, runningJob("1", 0))
			}
			return nil
		})
		w.reconcile()
		w.forAMinute()
		finishedNow(w)
		w.wantCalls(contract.ActionReconcile)
	})
	t.Run("a call that started after the backup finishes its job after the restore [F60]", func(t *testing.T) {
		w := newWorld(t, items(job("1"), version))
		s := restorable(w)
		w.fake.On(contract.ActionReconcile, func(context.Context, landscapertest.Input) error {
			if w.fake.Count(key, contract.ActionReconcile) == 1 {
				s.restore(w, job("1"))
			}
			return nil
		})
		w.reconcile()
		w.forAMinute()
		finishedNow(w)
		w.wantCalls(contract.ActionReconcile)
	})
}
