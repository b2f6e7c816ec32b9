// SPDX-License-Identifier: Apache-2.0

package deployerlib_test

import (
	"context"
	"testing"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployerlib"
	"github.com/deployerkit/deployerkit/deployerlib/deployertest"
)

// TestDeletesOnceWhileTheCacheLags: the answer to the removal of the last
// finalizer has the resourceVersion that the cache shows, so it does not look old.
func TestDeletesOnceWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	w := newWorld(t, items(finished(phases.Succeeded), deleted))
	var shown *lsv1alpha1.DeployItem // what the cache has: nothing newer than the start of the deletion
	w.fake.On(contract.Delete, func(context.Context, deployertest.Input) error {
		shown = w.stored()
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
	engine, err := deployerlib.NewEngine(deployerlib.DeployerArgs{
		Name: testName, Version: "v1", Type: testType, Deployer: w.fake, Clock: w.clock, Registerer: prometheus.NewRegistry(),
	}, deployerlib.Access{Client: asServer, Warn: w.warn, Items: func(ctx context.Context, key types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
		if shown != nil {
			return shown, nil
		}
		return w.cached(ctx, key)
	}})
	if err != nil {
		t.Fatal(err)
	}
	engine.Pass(t.Context(), key)
	engine.Pass(t.Context(), key)
	if w.stored() != nil {
		t.Error("the item is still there")
	}
	w.wantCalls(contract.Delete)
}

// TestLostAnswerWhileTheCacheLags: the end of a job was stored but its answer
// was lost. Once a live read has shown that, a cache from before must not be
// acted on.
func TestLostAnswerWhileTheCacheLags(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]change{"annotation": nil, "job ID": job("1")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changes := []change{}
			if stored != nil {
				changes = append(changes, stored)
			}
			w := newWorld(t, items(changes...))
			w.fake.On(contract.Reconcile, func(context.Context, deployertest.Input) error {
				shown := w.stored()
				w.serve = func(*lsv1alpha1.DeployItem) *lsv1alpha1.DeployItem { return shown }
				w.lose = func(string, client.Object) error { return errBoom }
				return nil
			})
			w.pass()
			w.lose = nil
			for range 3 { // the pending write is settled, then the cache is too old to act on
				w.clock.Step(time.Minute)
				w.pass()
			}
			if s := w.stored().Status; s.Phase != phases.Succeeded {
				t.Errorf("status %+v", s)
			}
			w.wantCalls(contract.Reconcile)
		})
	}
}

// TestNoTimeoutIsNone: the bound on hooks does not cut a call short whose item
// has no timeout [H-2].
func TestNoTimeoutIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, items(job("1"), func(di *lsv1alpha1.DeployItem) { di.Spec.Timeout = &lsv1alpha1.Duration{} }))
	w.fake.On(contract.Reconcile, func(ctx context.Context, _ deployertest.Input) error {
		w.clock.Step(time.Hour)
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
			return nil
		}
	})
	w.pass()
	if s := w.stored().Status; s.Phase != phases.Succeeded {
		t.Errorf("phase %q, error %+v", s.Phase, s.LastError)
	}
}
