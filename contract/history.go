// SPDX-License-Identifier: Apache-2.0

package contract

import (
	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
)

// NeverDeployed reports whether it is certain that no deployer ever did anything for the item: either the status says
// nothing at all, or [ConditionDeployed] is False. Such an item can be deleted without target, context or config.
// An item with an unknown history counts as deployed. Ask before [Start] is applied in memory.
func NeverDeployed(di *lsv1alpha1.DeployItem) bool {
	if di == nil {
		return false
	}
	s := &di.Status
	if s.Phase == "" && s.LastReconcileTime.IsZero() && noRaw(s.ProviderStatus) && s.ExportReference == nil {
		return true
	}
	c := GetCondition(s.Conditions, ConditionDeployed)
	return c != nil && c.Status == lsv1alpha1.ConditionFalse
}
