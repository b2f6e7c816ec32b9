// SPDX-License-Identifier: Apache-2.0

package deployerlib

import (
	"context"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/extension"
)

// memoryItems is an itemReader that always returns the same item.
type memoryItems struct{ item *lsv1alpha1.DeployItem }

func (m memoryItems) get(context.Context, types.NamespacedName) (*lsv1alpha1.DeployItem, error) {
	return m.item, nil
}

// idleDeployer is a deployer that does nothing.
type idleDeployer struct {
	Base
	hooks extension.ReconcileExtensionHooks
}

func (idleDeployer) Reconcile(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (idleDeployer) Delete(context.Context, *lsv1alpha1.Context, *lsv1alpha1.DeployItem, *lsv1alpha1.ResolvedTarget) error {
	return nil
}

func (d idleDeployer) ExtensionHooks() extension.ReconcileExtensionHooks { return d.hooks }

// newFinishedItem returns an item whose job is finished.
func newFinishedItem() *lsv1alpha1.DeployItem {
	di := &lsv1alpha1.DeployItem{}
	di.Namespace, di.Name, di.UID, di.ResourceVersion, di.Generation = "ns", "item", "uid", "7", 1
	di.Finalizers = []string{lsv1alpha1.LandscaperFinalizer}
	di.Spec.Type = "bench"
	di.Status.ObservedGeneration, di.Status.Phase = 1, lsv1alpha1.DeployItemPhases.Succeeded
	di.Status.JobID, di.Status.JobIDFinished = "job", "job"
	return di
}

// newOfflineReconciler returns a reconciler without a cluster. It can read the item di, but cannot send requests.
func newOfflineReconciler(tb testing.TB, di *lsv1alpha1.DeployItem, hooks extension.ReconcileExtensionHooks) *reconciler {
	tb.Helper()
	args := DeployerArgs{Type: di.Spec.Type, Deployer: idleDeployer{hooks: hooks}, Registerer: prometheus.NewRegistry()}
	args.Default()
	if err := args.Validate(); err != nil {
		tb.Fatal(err)
	}
	r, err := newReconciler(access{items: memoryItems{di}}, args)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// BenchmarkReconcileFinished measures a reconcile of a finished item, without hooks and with one hook.
func BenchmarkReconcileFinished(b *testing.B) {
	look := extension.OnItem(func(context.Context, logr.Logger, *lsv1alpha1.DeployItem, *lsv1alpha1.Target) error { return nil })
	cases := map[string]extension.ReconcileExtensionHooks{
		"NoHooks": nil,
		"OneHook": extension.ReconcileExtensionHooks{}.RegisterHook(look, extension.ShouldReconcileHook),
	}
	for name, hooks := range cases {
		b.Run(name, func(b *testing.B) {
			di := newFinishedItem()
			r := newOfflineReconciler(b, di, hooks)
			req := request{NamespacedName: types.NamespacedName{Namespace: di.Namespace, Name: di.Name}}
			b.ReportAllocs()
			for b.Loop() {
				if res, err := r.Reconcile(b.Context(), req); err != nil || res.RequeueAfter != 0 {
					b.Fatalf("want nothing to do, got %v, %v", res, err)
				}
			}
		})
	}
}
