// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// WasNeverDeployed reports whether the status proves that no deployer ever did anything for the item: the status is
// empty, or [ConditionDeployed] is False. The deletion of such an item needs no target, no context and no
// configuration. If the history of an item is unknown, the item counts as deployed. Call WasNeverDeployed before
// [StartRun] changes the item in memory.
func WasNeverDeployed(di *lsv1alpha1.DeployItem) bool {
	if di == nil {
		return false
	}
	s := &di.Status
	if s.Phase == "" && s.LastReconcileTime.IsZero() && isEmptyRaw(s.ProviderStatus) && s.ExportReference == nil {
		return true
	}
	c := GetCondition(s.Conditions, ConditionDeployed)
	return c != nil && c.Status == lsv1alpha1.ConditionFalse
}
