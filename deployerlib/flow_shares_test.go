// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/landscapertest"
)

// TestItemsThatWaitForWorker checks that an item that waits for a worker makes no requests, and is queued when a worker
// is free.
func TestItemsThatWaitForWorker(t *testing.T) {
	second := types.NamespacedName{Namespace: ns, Name: "second"}
	waiting := newItem(withRunningJob("1", -time.Minute), func(di *lsv1alpha1.DeployItem) { di.Name, di.UID = second.Name, "uid-2" })
	w := newTestEnv(t, []client.Object{newItem(withJob("1")), waiting}, withArgs(func(args *deployerlib.DeployerArgs) { args.Options.MaxConcurrentReconciles = 1 }))
	release := make(chan struct{})
	w.fake.SetDefaultAnswer(contract.ActionReconcile, func(_ context.Context, in landscapertest.Input) error {
		if in.Item.Name == key.Name {
			<-release
		}
		return nil
	})
	first := w.startReconcile(t.Context())
	w.waitForCall(contract.ActionReconcile, 1)
	_ = w.popRequests()
	t.Run("an item without a worker sends no requests and waits at most until the deadline of its run [F4]", func(t *testing.T) {
		for range 3 {
			res, err := w.Reconcile(t.Context(), second)
			if err != nil || res.RequeueAfter != 9*time.Minute {
				t.Errorf("Reconcile: got %+v, %v, want the deadline in 9 minutes", res, err)
			}
		}
		w.expectRequests()
		if queued := w.ListQueued(); len(queued) != 0 {
			t.Errorf("queued although no worker is free: %v", queued)
		}
	})
	close(release)
	_ = first.wait()
	t.Run("an item that waited for a worker is queued before all others when a worker is free [F4]", func(t *testing.T) {
		if diff := cmp.Diff(map[types.NamespacedName]int{second: 200}, w.ListQueued()); diff != "" {
			t.Errorf("queued: -want, +got:\n%s", diff)
		}
		if _, err := w.Reconcile(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := w.fake.WaitForCall(ctx, second, contract.ActionReconcile, 1); err != nil {
			t.Error(err)
		}
	})
}
