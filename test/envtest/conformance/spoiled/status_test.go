// SPDX-License-Identifier: Apache-2.0

package spoiled_test

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/deployerkit/deployerkit/contract"
)

func (p *reconciliation) getOperation() lsv1alpha1.Operation {
	return lsv1alpha1.Operation(p.di.Annotations[lsv1alpha1.OperationAnnotation])
}

func (p *reconciliation) isDeleting() bool { return p.di.DeletionTimestamp != nil }

func (p *reconciliation) isFinal() bool { return contract.IsFinal(p.di.Status.Phase) }

// hasJobs reports whether the item follows the job-ID revision.
func (p *reconciliation) hasJobs() bool {
	return p.di.Status.JobID != "" || p.di.Annotations[lsv1alpha1.DeployerTypeAnnotation] != ""
}

// isPending reports whether the item has a job that is not finished.
func (p *reconciliation) isPending() bool {
	return p.di.Status.JobID != "" && p.di.Status.JobID != p.di.Status.JobIDFinished
}

func (p *reconciliation) hasChanged() bool { return p.di.Generation != p.di.Status.ObservedGeneration }

// isRequested reports whether an operation requests a run under the annotation revision.
func (p *reconciliation) isRequested() bool {
	return p.getOperation() == lsv1alpha1.ReconcileOperation || p.getOperation() == lsv1alpha1.ForceReconcileOperation
}

// isDue reports whether a run has to begin or to continue. It need not check for a deletion, because a deletion
// increases the generation.
func (p *reconciliation) isDue() bool {
	if p.hasJobs() {
		return p.isPending()
	}
	return p.isRequested() || p.hasChanged() || !p.isFinal()
}

// fresh reports whether the run that is due has not begun yet.
func (p *reconciliation) fresh() bool {
	s := p.di.Status
	if p.isFinal() || s.Phase == "" || s.LastReconcileTime == nil {
		return true
	}
	if p.hasJobs() {
		return s.LastReconcileTime.Before(s.JobIDGenerationTime)
	}
	return p.isRequested() || p.hasChanged()
}

// isUnchanged reports whether a job must not start a run. That is so if spec.updateOnChangeOnly is set, and the item
// has succeeded and has not changed since then.
func (p *reconciliation) isUnchanged() bool {
	return p.hasJobs() && p.di.Spec.UpdateOnChangeOnly && !p.isDeleting() && !p.hasChanged() && p.di.Status.Phase == phases.Succeeded
}

func (p *reconciliation) isTimedOut() bool {
	timeout := p.di.Spec.Timeout
	return timeout != nil && time.Since(p.di.Status.LastReconcileTime.Time) > timeout.Duration
}

// newJob sets a new job ID. The operation test-reconcile requires that.
func (p *reconciliation) newJob() {
	p.di.Status.JobID = uuid.NewString()
	p.di.Status.JobIDGenerationTime = new(metav1.Now())
}

// fill sets the status fields that are written at the start of a run, except the phase.
func (p *reconciliation) fill() {
	s := &p.di.Status
	now := metav1.Now()
	if now.Before(s.JobIDGenerationTime) {
		now = *s.JobIDGenerationTime
	}
	s.LastReconcileTime, s.ObservedGeneration, s.LastError = &now, p.di.Generation, nil
	s.Deployer = lsv1alpha1.DeployerInformation{Name: string(p.kind), Identity: "only", Version: "1"}
}

// begin starts a run: it writes the status and then, if necessary, the metadata.
func (p *reconciliation) begin(ctx context.Context) error {
	p.fill()
	p.di.Status.Phase = phases.Init
	if p.hasJobs() && p.isDeleting() {
		p.di.Status.Phase = phases.InitDelete
	}
	if err := p.save(ctx); err != nil {
		return err
	}
	return p.updateMetadata(ctx)
}

// setFailed ends a run with an error.
func (p *reconciliation) setFailed(ctx context.Context, reason, message string, codes ...lsv1alpha1.ErrorCode) error {
	now := metav1.Now()
	phase := phases.Failed
	if p.hasJobs() && p.isDeleting() {
		phase = phases.DeleteFailed
	}
	return p.completeRun(ctx, phase, &lsv1alpha1.Error{
		Operation: "Deploy", Reason: reason, Message: message, Codes: codes, LastTransitionTime: now, LastUpdateTime: now,
	})
}

// completeRun ends a run in one write.
func (p *reconciliation) completeRun(ctx context.Context, phase lsv1alpha1.DeployItemPhase, e *lsv1alpha1.Error) error {
	p.di.Status.Phase, p.di.Status.LastError = phase, e
	if p.hasJobs() {
		p.di.Status.JobIDFinished = p.di.Status.JobID
	}
	return p.save(ctx)
}

// updateMetadata adds the finalizer and removes annotations that have taken effect.
func (p *reconciliation) updateMetadata(ctx context.Context) error {
	if !p.isDeleting() {
		controllerutil.AddFinalizer(p.di, lsv1alpha1.LandscaperFinalizer)
	}
	for _, key := range []string{lsv1alpha1.OperationAnnotation, lsv1alpha1.ReconcileTimestampAnnotation, contract.AbortTimestampAnnotation} {
		delete(p.di.Annotations, key)
	}
	return p.saveMeta(ctx)
}

// save writes the status if it changed. The write succeeds only if the stored version is still the version that was
// read.
func (p *reconciliation) save(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.base.Status, p.di.Status) {
		return nil
	}
	err := p.client.Status().Patch(ctx, p.di, client.MergeFromWithOptions(p.base, client.MergeFromWithOptimisticLock{}))
	p.base = p.di.DeepCopy()
	return err
}

// saveMeta is like save, but writes the metadata.
func (p *reconciliation) saveMeta(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.base.ObjectMeta, p.di.ObjectMeta) {
		return nil
	}
	err := p.client.Patch(ctx, p.di, client.MergeFromWithOptions(p.base, client.MergeFromWithOptimisticLock{}))
	p.base = p.di.DeepCopy()
	return err
}
