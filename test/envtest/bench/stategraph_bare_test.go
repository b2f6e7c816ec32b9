// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"
	"net/http"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/stategraph"
)

// graphBare is a loop as one would write it by hand for this one graph: wave by wave it stores in the status what it is
// about to write, and then sends the objects of the wave concurrently. It reads nothing, remembers nothing, and does
// not handle readiness, errors and removal.
type graphBare struct {
	bare

	objects client.Client
	counter faultnet.Counter
}

func (b *graphBare) target() *faultnet.Counter { return &b.counter }

// add registers the loop.
func (b *graphBare) add(mgr ctrl.Manager) error {
	b.client = mgr.GetClient()
	cfg := rest.CopyConfig(mgr.GetConfig())
	cfg.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return b.counter.Transport(rt) }
	cfg.QPS = -1
	var err error
	if b.objects, err = client.New(cfg, client.Options{}); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named("bare-graph").For(&lsv1alpha1.DeployItem{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(b)
}

// Reconcile does a job that is not finished.
func (b *graphBare) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	di := &lsv1alpha1.DeployItem{}
	if err := b.client.Get(ctx, req.NamespacedName, di); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if _, done := b.done.Load(di.Status.JobID); done || di.Status.JobID == di.Status.JobIDFinished {
		return ctrl.Result{}, nil
	}
	if err := b.begin(ctx, di); err != nil {
		return ctrl.Result{}, err
	}
	status := &stategraph.ProviderStatus{ObservedGeneration: di.Generation}
	status.SetGroupVersionKind(stategraph.StatusGVK)
	first := di.Status.ProviderStatus == nil
	for _, wave := range graphWaves {
		if err := b.wave(ctx, di, wave, status, first); err != nil {
			return ctrl.Result{}, err
		}
	}
	now := metav1.Now()
	err := b.note(ctx, di, status, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.JobIDFinished = lsv1alpha1.DeployItemPhases.Succeeded, s.JobID
		s.TransitionTimes.FinishedTime = &now
	})
	if err == nil {
		b.done.Store(di.Status.JobID, nil)
	}
	return ctrl.Result{}, err
}

// begin writes that the job has begun, and the finalizer.
func (b *graphBare) begin(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	now := metav1.Now()
	if err := b.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.ObservedGeneration, s.LastReconcileTime = lsv1alpha1.DeployItemPhases.Init, di.Generation, &now
		s.Deployer = lsv1alpha1.DeployerInformation{Name: "bare", Identity: "bare", Version: "v0"}
		s.TransitionTimes = &lsv1alpha1.TransitionTimes{InitTime: &now}
	}); err != nil {
		return err
	}
	base := di.DeepCopy()
	if controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer) {
		return b.client.Patch(ctx, di, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	}
	return nil
}

// wave notes and writes the objects of one wave.
func (b *graphBare) wave(ctx context.Context, di *lsv1alpha1.DeployItem, wave []string, status *stategraph.ProviderStatus, first bool) error {
	owner := ownership.Owner{UID: di.UID, Landscape: "landscape", Namespace: di.Namespace, Name: di.Name}
	objects := make([]*unstructured.Unstructured, len(wave))
	for i, component := range wave {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(graphObject(di, component))
		if err != nil {
			return err
		}
		objects[i] = &unstructured.Unstructured{Object: fields}
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		objects[i].SetAPIVersion("v1")
		objects[i].SetKind("ConfigMap")
		labels, _ := stategraph.Identity(di, component, "")
		objects[i].SetLabels(labels)
		owner.Stamp(objects[i])
		status.Components = append(status.Components, stategraph.ComponentStatus{Name: component, State: stategraph.StateReady})
		status.Inventory.Entries = append(status.Inventory.Entries, apply.Entry{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: di.Namespace, Name: objects[i].GetName(), Part: apply.Part{Component: component},
		})
	}
	if first {
		if err := b.note(ctx, di, status, func(*lsv1alpha1.DeployItemStatus) {}); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, object := range objects {
		group.Go(func() error {
			return b.objects.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner.Manager()), client.ForceOwnership)
		})
	}
	return group.Wait()
}

// note stores the provider status, and whatever else changes.
func (b *graphBare) note(ctx context.Context, di *lsv1alpha1.DeployItem, status *stategraph.ProviderStatus, change func(*lsv1alpha1.DeployItemStatus)) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return b.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) {
		s.ProviderStatus = &runtime.RawExtension{Raw: raw}
		change(s)
	})
}
