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

// reservedAnnotations and reservedLabels are the keys that belong to the contract. Annotations and labels with these
// keys request or stop a run, record the time of such a request, select the revision, or mark an item that an Execution
// manages.
var (
	reservedAnnotations = []string{
		lsv1alpha1.OperationAnnotation, contract.AbortTimestampAnnotation, lsv1alpha1.ReconcileTimestampAnnotation,
		lsv1alpha1.DeployerTypeAnnotation,
	}
	reservedLabels = []string{lsv1alpha1.ExecutionManagedByLabel}
)

// ChangedProtectedField returns the path of the first field that belongs to the contract and differs between two
// versions of one item. It returns "" if there is no such field or if one version is nil. Patches of hooks and
// deployers must not change the fields that belong to the contract. These fields are the spec, Landscaper's finalizer,
// the annotations "operation", "abort-time", "reconcile-time" and "deployer-type", the label "managed-by" of items that
// an Execution manages, and every status field except providerStatus, exportRef and the conditions.
//
// ChangedProtectedField is not used for changes that a deployer makes to the item in memory, for example to the phase;
// see [ResetProtected].
func ChangedProtectedField(before, after *lsv1alpha1.DeployItem) string {
	if before == nil || after == nil {
		return ""
	}
	// DeepEqual is fast. Semantic.DeepEqual compares a configuration byte by byte, which takes milliseconds.
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
	return findProtectedChange(&before.Status, &after.Status)
}

// changedKey returns the first of the given keys that has different values in the two maps or exists in only one of
// them.
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

// findProtectedChange returns the path of the first status field that belongs to the contract and differs, or "" if
// there is none.
func findProtectedChange(b, a *lsv1alpha1.DeployItemStatus) string {
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
