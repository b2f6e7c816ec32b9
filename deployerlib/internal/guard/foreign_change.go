// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/deployerkit/deployerkit/contract"
)

// landscaperOperations lists the values of lastError.operation that Landscaper writes when it ends a run.
var landscaperOperations = []string{"InterruptOperation", lsv1alpha1.PickupTimeoutOperation, contract.AbortingTimeoutOperation}

// FindForeignChange compares two statuses of an item. The parameter `stored` is the status as the library wrote it
// last, and the parameter `fresh` is the status at the API server. FindForeignChange returns the path of a field that a
// client other than the library and Landscaper has changed. It returns "" if there is no such field, or if the run has
// ended.
func FindForeignChange(stored, fresh *lsv1alpha1.DeployItemStatus) string {
	if stored.JobID != fresh.JobID || stored.JobIDFinished != fresh.JobIDFinished || !stored.LastReconcileTime.Equal(fresh.LastReconcileTime) {
		return "" // Landscaper ended the job, or another run began
	}
	if e := fresh.LastError; e != nil && slices.Contains(landscaperOperations, e.Operation) {
		return ""
	}
	if path := findProtectedChange(stored, fresh); path != "" {
		return path
	}
	switch {
	case !equality.Semantic.DeepEqual(stored.Conditions, fresh.Conditions):
		return "status.conditions"
	case !equality.Semantic.DeepEqual(stored.ProviderStatus, fresh.ProviderStatus):
		return "status.providerStatus"
	case !equality.Semantic.DeepEqual(stored.ExportReference, fresh.ExportReference):
		return "status.exportRef"
	}
	return ""
}
