// SPDX-License-Identifier: Apache-2.0

package landscapertest

import (
	"context"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deployerkit/deployerkit/contract"
)

// annotationProtocol implements [contract.RevisionAnnotation].
type annotationProtocol struct{}

func (annotationProtocol) hasJobs() bool { return false }

func (annotationProtocol) prepareCreate(di *lsv1alpha1.DeployItem) {
	di.Annotations[lsv1alpha1.OperationAnnotation] = string(lsv1alpha1.ReconcileOperation)
}

func (annotationProtocol) prepareUpdate(di *lsv1alpha1.DeployItem, now string) {
	metav1.SetMetaDataAnnotation(&di.ObjectMeta, lsv1alpha1.OperationAnnotation, string(lsv1alpha1.ReconcileOperation))
	metav1.SetMetaDataAnnotation(&di.ObjectMeta, lsv1alpha1.ReconcileTimestampAnnotation, now)
}

func (annotationProtocol) isFinished(di *lsv1alpha1.DeployItem) (bool, error) {
	s := di.Status
	if hasPickupTimeout(di) && contract.IsFinal(s.Phase) {
		return true, nil
	}
	asked := di.Annotations[lsv1alpha1.OperationAnnotation] == string(lsv1alpha1.ReconcileOperation)
	return !asked && contract.IsFinal(s.Phase) && s.ObservedGeneration == di.Generation, nil
}

func (annotationProtocol) runSince(di *lsv1alpha1.DeployItem) *metav1.Time {
	return di.Status.LastReconcileTime
}

func (annotationProtocol) addFailure(map[string]any, *lsv1alpha1.DeployItem, map[string]any, string) {
}

func (annotationProtocol) pendingSince(di *lsv1alpha1.DeployItem) (time.Time, bool) {
	since, ok := parseAnnotationTime(di, lsv1alpha1.ReconcileTimestampAnnotation)
	return since, ok && !hasPickupTimeout(di)
}

// applyTimeouts requests an abort if a run takes too long. If the abort also takes too long, applyTimeouts ends the
// run.
func (annotationProtocol) applyTimeouts(ctx context.Context, l *Landscaper, di *lsv1alpha1.DeployItem) error {
	if contract.IsFinal(di.Status.Phase) {
		return nil
	}
	if since, ok := parseAnnotationTime(di, contract.AbortTimestampAnnotation); ok {
		if l.isExpired(since, l.options.Abort) {
			e := l.newStatusError(contract.AbortingTimeoutOperation, contract.AbortingTimeoutReason,
				"the deployer has not aborted this deployitem in time", lsv1alpha1.ErrorTimeout)
			return l.markFailed(ctx, di, e, false)
		}
		return nil
	}
	if limit, ok := l.maxRunDuration(di); ok && l.isExpired(di.Status.LastReconcileTime.Time, limit) {
		return l.SetOperation(ctx, keyOf(di), contract.AbortOperation)
	}
	return nil
}

// hasPickupTimeout reports whether Landscaper ended the run because no deployer started it in time.
func hasPickupTimeout(di *lsv1alpha1.DeployItem) bool {
	e := di.Status.LastError
	return e != nil && e.Reason == lsv1alpha1.PickupTimeoutReason
}

// parseAnnotationTime reads a time from an annotation.
func parseAnnotationTime(di *lsv1alpha1.DeployItem, key string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339, di.Annotations[key])
	return t, err == nil
}
