// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/contract"
)

// otherManagers returns the field managers of an item except for Landscaper.
func otherManagers(di item) []string {
	var managers []string
	for _, entry := range di.ManagedFields {
		if entry.Manager != landscaper && !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// stateOf describes the state of an item in the messages of failures.
func stateOf(di item) string {
	text := fmt.Sprintf("phase %q", di.Status.Phase)
	if s := di.Status; s.JobID != "" {
		text += fmt.Sprintf(", job finished: %t", s.JobID == s.JobIDFinished)
	}
	if op := di.Annotations[lsv1alpha1.OperationAnnotation]; op != "" {
		text += fmt.Sprintf(", operation %q", op)
	}
	return text + errorOf(di)
}

// errorOf returns the last error of an item for the messages of failures, or "" if there is none.
func errorOf(di item) string {
	if di.Status.LastError == nil {
		return ""
	}
	return fmt.Sprintf(", lastError %s: %s", di.Status.LastError.Reason, contract.OneLine(di.Status.LastError.Message, 200))
}
