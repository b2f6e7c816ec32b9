// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"encoding/json"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/apply/ownership"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/stategraph"
)

// graphLoop is a hand-written controller for the graph of BenchmarkStateGraph. It records the objects in the status
// before it writes them. It writes one wave of objects after the other, and all objects of a wave concurrently. At the
// end, it writes the states of the components and the condition that the library also writes, because the API server
// needs more time for a larger status. It does not read objects, does not store the UIDs and the values of the objects
// that it applied, and does not handle readiness, errors and removal.
type graphLoop struct {
	bare

	objects client.Client
}

func newGraphLoop() *competitor {
	e := &competitor{name: "bare", kind: graphType, target: &faultnet.Counter{}, own: &faultnet.Counter{}}
	e.add = func(mgr ctrl.Manager, e *competitor) error {
		cfg := withCounter(e.target, e.config)
		cfg.QPS = -1
		target, err := client.New(cfg, client.Options{})
		if err != nil {
			return err
		}
		return ctrl.NewControllerManagedBy(mgr).Named("bare-graph").For(&lsv1alpha1.DeployItem{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
			Complete(&graphLoop{bare: bare{client: mgr.GetClient()}, objects: target})
	}
	return e
}

// Reconcile processes a job, unless the job is finished.
func (b *graphLoop) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
	owner := ownership.Owner{UID: di.UID, Landscape: "landscape", Namespace: di.Namespace, Name: di.Name}
	var waves [][]*unstructured.Unstructured
	for _, components := range graphWaves {
		wave, err := prepareWave(di, owner, components, status)
		if err != nil {
			return ctrl.Result{}, err
		}
		waves = append(waves, wave)
	}
	if first {
		if err := b.writeStatus(ctx, di, status, func(*lsv1alpha1.DeployItemStatus) {}); err != nil {
			return ctrl.Result{}, err
		}
	}
	for i, wave := range waves {
		if err := b.apply(ctx, owner, wave); err != nil {
			return ctrl.Result{}, err
		}
		for _, component := range graphWaves[i] {
			status.Components = append(status.Components, stategraph.ComponentStatus{Name: component, State: stategraph.StateReady})
		}
	}
	now := metav1.Now()
	err := b.writeStatus(ctx, di, status, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.JobIDFinished = lsv1alpha1.DeployItemPhases.Succeeded, s.JobID
		s.TransitionTimes.FinishedTime = &now
		s.Conditions = contract.SetCondition(s.Conditions, stategraph.ConditionReady, lsv1alpha1.ConditionTrue, "AllReady", "all 10 components are ready", now.Time)
	})
	if err == nil {
		b.done.Store(di.Status.JobID, nil)
	}
	return ctrl.Result{}, err
}

// prepareWave creates the objects of one wave in memory, and adds them to the inventory in memory.
func prepareWave(di *lsv1alpha1.DeployItem, owner ownership.Owner, components []string, status *stategraph.ProviderStatus) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, len(components))
	for i, component := range components {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newGraphObject(di, component))
		if err != nil {
			return nil, err
		}
		objects[i] = &unstructured.Unstructured{Object: fields}
		unstructured.RemoveNestedField(fields, "metadata", "creationTimestamp")
		objects[i].SetAPIVersion("v1")
		objects[i].SetKind("ConfigMap")
		labels, _ := stategraph.Identity(di, component, "")
		objects[i].SetLabels(labels)
		owner.Mark(objects[i])
		status.Inventory.Entries = append(status.Inventory.Entries, apply.Entry{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: di.Namespace, Name: objects[i].GetName(),
			ComponentInfo: apply.ComponentInfo{Component: component},
		})
	}
	return objects, nil
}

// apply applies the objects of one wave.
func (b *graphLoop) apply(ctx context.Context, owner ownership.Owner, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, object := range objects {
		group.Go(func() error {
			return b.objects.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner.FieldManager()), client.ForceOwnership)
		})
	}
	return group.Wait()
}

// writeStatus writes the status. The write contains the given provider status and the changes that the function
// `change` makes.
func (b *graphLoop) writeStatus(ctx context.Context, di *lsv1alpha1.DeployItem, status *stategraph.ProviderStatus, change func(*lsv1alpha1.DeployItemStatus)) error {
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return b.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) {
		s.ProviderStatus = &runtime.RawExtension{Raw: raw}
		change(s)
	})
}
