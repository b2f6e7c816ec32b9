// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// listOtherManagers returns the field managers of an item except for Landscaper.
func listOtherManagers(di item) []string {
	var managers []string
	for _, entry := range di.ManagedFields {
		if entry.Manager != fieldManager && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// formatState describes the state of an item in the messages of failures.
func formatState(di item) string {
	text := fmt.Sprintf("phase %q", di.Status.Phase)
	if s := di.Status; s.JobID != "" {
		text += fmt.Sprintf(", job finished: %t", s.JobID == s.JobIDFinished)
	}
	if op := di.Annotations[lsv1alpha1.OperationAnnotation]; op != "" {
		text += fmt.Sprintf(", operation %q", op)
	}
	return text + formatError(di)
}

// formatError returns the last error of an item for the messages of failures, or "" if there is none.
func formatError(di item) string {
	if di.Status.LastError == nil {
		return ""
	}
	return fmt.Sprintf(", lastError %s: %s", di.Status.LastError.Reason, contract.OneLine(di.Status.LastError.Message, 200))
}
