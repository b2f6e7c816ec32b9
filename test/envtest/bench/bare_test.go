// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"context"
	"sync"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/deployers/mock"
)

// bare is a hand-written controller that reads from the cache and sends only the writes that a job requires. The writes
// contain the resourceVersion. They set the same condition as the mock deployer, so that the status has the same size.
// bare does not handle hooks, errors, timeouts, conflicts, aborts or restarts.
type bare struct {
	client client.Client
	done   sync.Map // IDs of finished jobs; these jobs are not started again, even if the cache is outdated
}

// add adds the controller to a manager.
func (b *bare) add(mgr ctrl.Manager) error {
	b.client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).Named("bare").For(&lsv1alpha1.DeployItem{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(b)
}

// Reconcile makes the writes of a job, unless the job is finished.
func (b *bare) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
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
	return ctrl.Result{}, b.completeJob(ctx, di)
}

// begin writes the start of the job to the status, and then adds the finalizer.
func (b *bare) begin(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	now := metav1.Now()
	if err := b.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.ObservedGeneration, s.LastReconcileTime = lsv1alpha1.DeployItemPhases.Init, di.Generation, &now
		s.Deployer = lsv1alpha1.DeployerInformation{Name: mock.Name, Identity: mock.Name, Version: "devel"}
		s.TransitionTimes = &lsv1alpha1.TransitionTimes{TriggerTime: s.TransitionTimes.TriggerTime, InitTime: &now}
	}); err != nil {
		return err
	}
	base := di.DeepCopy()
	if !controllerutil.AddFinalizer(di, lsv1alpha1.LandscaperFinalizer) {
		return nil
	}
	return b.client.Patch(ctx, di, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// completeJob writes the success of the job to the status.
func (b *bare) completeJob(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	now := metav1.Now()
	err := b.status(ctx, di, func(s *lsv1alpha1.DeployItemStatus) {
		s.Phase, s.JobIDFinished = lsv1alpha1.DeployItemPhases.Succeeded, s.JobID
		s.TransitionTimes.FinishedTime = &now
		s.Conditions = contract.SetCondition(s.Conditions, mock.ValidationCondition, lsv1alpha1.ConditionTrue, "SuccessfulValidation", "the provider configuration is valid", now.Time)
	})
	if err == nil {
		b.done.Store(di.Status.JobID, nil)
	}
	return err
}

// status changes the status in one write.
func (b *bare) status(ctx context.Context, di *lsv1alpha1.DeployItem, change func(*lsv1alpha1.DeployItemStatus)) error {
	base := di.DeepCopy()
	change(&di.Status)
	return b.client.Status().Patch(ctx, di, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}
