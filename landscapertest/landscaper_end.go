// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
)

// Delete deletes items one after the other and waits until all of them are gone. The caller must list dependents before
// their dependencies. Under the job-ID revision, Delete first sets the deletionTimestamp of all items, as Landscaper
// does. It then gives each item a job that requests the deletion, as soon as the previous item is gone. Delete returns
// an error if a deletion fails.
func (l *Landscaper) Delete(ctx context.Context, items ...types.NamespacedName) error {
	if l.protocol.hasJobs() {
		if err := l.MarkForDeletion(ctx, items...); err != nil {
			return err
		}
	}
	for _, item := range items {
		if err := l.requestDeletion(ctx, item); err != nil {
			return err
		}
		if err := l.WaitForDeletion(ctx, item); err != nil {
			return err
		}
	}
	return nil
}

// MarkForDeletion sets the deletionTimestamp of items. Under the job-ID revision, this does not yet request their
// deletion.
func (l *Landscaper) MarkForDeletion(ctx context.Context, items ...types.NamespacedName) error {
	for _, item := range items {
		if err := l.client.Delete(ctx, newItemWithKey(item)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete deploy item %s: %w", item, err)
		}
	}
	return nil
}

// requestDeletion requests the deletion of an item. It returns nil if the item no longer exists.
func (l *Landscaper) requestDeletion(ctx context.Context, item types.NamespacedName) error {
	if !l.protocol.hasJobs() {
		return l.MarkForDeletion(ctx, item)
	}
	err := l.TriggerWithJobID(ctx, item, uuid.NewString())
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// interruptOperation is the operation and the reason in the lastError of an interrupted item.
const interruptOperation = "InterruptOperation"

// Interrupt ends the unfinished jobs of items, as the operation "interrupt" of an Execution does. It can be used only
// under the job-ID revision.
func (l *Landscaper) Interrupt(ctx context.Context, items ...types.NamespacedName) error {
	for _, item := range items {
		di, err := l.Get(ctx, item)
		if err != nil {
			return err
		}
		if di.Status.JobID == di.Status.JobIDFinished {
			continue
		}
		e := l.newStatusError(interruptOperation, interruptOperation, "operation was interrupted")
		if err := l.markFailed(ctx, di, e, false); err != nil {
			return err
		}
	}
	return nil
}

// newStatusError returns an error in the form that Landscaper uses in the status.
func (l *Landscaper) newStatusError(operation, reason, message string, codes ...lsv1alpha1.ErrorCode) map[string]any {
	now := l.now()
	e := map[string]any{"operation": operation, "reason": reason, "message": message, "lastTransitionTime": now, "lastUpdateTime": now}
	if len(codes) > 0 {
		e["codes"] = codes
	}
	return e
}

// markFailed ends the run of an item with the error e, without waiting for the deployer, as Landscaper does. If observe
// is true, markFailed also sets observedGeneration to the generation of the item.
func (l *Landscaper) markFailed(ctx context.Context, di *lsv1alpha1.DeployItem, e map[string]any, observe bool) error {
	last := map[string]any{"codes": nil} // a merge patch would otherwise keep the codes of the previous error
	maps.Copy(last, e)
	status := map[string]any{
		"phase":     contract.FailedPhase(l.options.Revision, di.DeletionTimestamp != nil),
		"lastError": last, "observedGeneration": nil,
	}
	if observe {
		status["observedGeneration"] = di.Generation
	}
	l.protocol.addFailure(status, di, e, l.now())
	return l.client.patchStatus(ctx, keyOf(di), status)
}

// ApplyTimeouts checks the items of a namespace once and applies Landscaper's timeouts to them. If namespace is empty,
// it checks the items of all namespaces. The pickup timeout applies in both revisions. The progressing timeout and the
// abort timeout apply only in the annotation revision.
func (l *Landscaper) ApplyTimeouts(ctx context.Context, namespace string) error {
	list := &lsv1alpha1.DeployItemList{}
	if err := l.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list deploy items: %w", err)
	}
	var errs []error
	for i := range list.Items {
		err := l.applyItemTimeouts(ctx, &list.Items[i])
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Run calls ApplyTimeouts repeatedly until ctx is done. It returns the error of ctx or of ApplyTimeouts.
func (l *Landscaper) Run(ctx context.Context, namespace string) error {
	ticker := time.NewTicker(l.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if err := l.ApplyTimeouts(ctx, namespace); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// applyItemTimeouts applies the timeouts to one item.
func (l *Landscaper) applyItemTimeouts(ctx context.Context, di *lsv1alpha1.DeployItem) error {
	if since, pending := l.protocol.pendingSince(di); pending && l.isExpired(since, l.options.Pickup) {
		e := l.newStatusError(lsv1alpha1.PickupTimeoutOperation, lsv1alpha1.PickupTimeoutReason,
			fmt.Sprintf("no deployer has reconciled this deployitem within %d seconds", l.options.Pickup/time.Second), lsv1alpha1.ErrorTimeout)
		return l.markFailed(ctx, di, e, l.protocol.hasJobs())
	}
	return l.protocol.applyTimeouts(ctx, l, di)
}

// maxRunDuration returns the maximum duration of the item's current run. It returns false if no run has begun, or if
// spec.timeout is 0, which means that there is no limit.
func (l *Landscaper) maxRunDuration(di *lsv1alpha1.DeployItem) (time.Duration, bool) {
	if di.Status.LastReconcileTime == nil {
		return 0, false
	}
	if di.Spec.Timeout == nil {
		return l.options.Progressing, true
	}
	return di.Spec.Timeout.Duration, di.Spec.Timeout.Duration != 0
}

// isExpired reports whether a time limit, which is counted from since, has passed.
func (l *Landscaper) isExpired(since time.Time, limit time.Duration) bool {
	return l.options.Clock.Since(since) >= limit
}
