// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"fmt"
	"reflect"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/deployerkit/deployerkit/contract"
)

// reservedAnnotations and reservedLabels are what Landscaper tells a deployer with, and which revision it speaks.
var (
	reservedAnnotations = []string{
		lsv1alpha1.OperationAnnotation, contract.AbortTimestampAnnotation, lsv1alpha1.ReconcileTimestampAnnotation,
		lsv1alpha1.DeployerTypeAnnotation,
	}
	reservedLabels = []string{lsv1alpha1.ExecutionManagedByLabel}
)

// Trespass returns the path of the first place that belongs to the contract and in which two versions of one item
// differ, "" if there is none or one of them is nil. Such a place is not a user's to patch: the spec, the finalizer, the
// annotations that start, time or stop a run, and every status field but providerStatus, exportRef and the conditions.
// (What a deployer sets on the item that it was handed, like the phase, is another thing: see [Protect].)
func Trespass(before, after *lsv1alpha1.DeployItem) string {
	if before == nil || after == nil {
		return ""
	}
	// The first comparison knows bytes; the second takes a configuration byte by byte, which is milliseconds.
	if !reflect.DeepEqual(before.Spec, after.Spec) && !equality.Semantic.DeepEqual(before.Spec, after.Spec) {
		return "spec"
	}
	if slices.Contains(before.Finalizers, lsv1alpha1.LandscaperFinalizer) != slices.Contains(after.Finalizers, lsv1alpha1.LandscaperFinalizer) {
		return fmt.Sprintf("metadata.finalizers[%q]", lsv1alpha1.LandscaperFinalizer)
	}
	if key, found := changedKey(before.Annotations, after.Annotations, reservedAnnotations); found {
		return fmt.Sprintf("metadata.annotations[%q]", key)
	}
	if key, found := changedKey(before.Labels, after.Labels, reservedLabels); found {
		return fmt.Sprintf("metadata.labels[%q]", key)
	}
	return statusTrespass(&before.Status, &after.Status)
}

// changedKey finds the first of the keys whose presence or value differs.
func changedKey(before, after map[string]string, keys []string) (string, bool) {
	for _, key := range keys {
		old, existed := before[key]
		value, exists := after[key]
		if existed != exists || old != value {
			return key, true
		}
	}
	return "", false
}

// statusTrespass is Trespass for the status.
func statusTrespass(b, a *lsv1alpha1.DeployItemStatus) string {
	for _, field := range []struct {
		name          string
		before, after any
	}{
		{"phase", b.Phase, a.Phase},
		{"observedGeneration", b.ObservedGeneration, a.ObservedGeneration},
		{"lastReconcileTime", b.LastReconcileTime, a.LastReconcileTime},
		{"deployer", b.Deployer, a.Deployer},
		{"lastError", b.LastError, a.LastError},
		{"firstError", b.FirstError, a.FirstError},
		{"lastErrors", b.LastErrors, a.LastErrors},
		{"jobID", b.JobID, a.JobID},
		{"jobIDFinished", b.JobIDFinished, a.JobIDFinished},
		{"jobIDGenerationTime", b.JobIDGenerationTime, a.JobIDGenerationTime},
		{"transitionTimes", b.TransitionTimes, a.TransitionTimes},
		{"deployItemPhase", b.DeployerPhase, a.DeployerPhase},
	} {
		if !equality.Semantic.DeepEqual(field.before, field.after) {
			return "status." + field.name
		}
	}
	return ""
}
