// SPDX-License-Identifier: Apache-2.0

package contract_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/contract"
)

func TestWasNeverDeployed(t *testing.T) {
	t.Parallel()
	deployed := func(s lsv1alpha1.ConditionStatus) itemOption {
		return func(di *lsv1alpha1.DeployItem) {
			di.Status.Conditions = []lsv1alpha1.Condition{newCondition(contract.ConditionDeployed, s, 0)}
		}
	}
	for name, tc := range map[string]struct {
		di   *lsv1alpha1.DeployItem
		want bool
	}{
		"nil":                       {nil, false},
		"new item with a job [H-6]": {newItem(withFinalizer, withJob("a", "", 0)), true},
		"empty provider status":     {newItem(func(di *lsv1alpha1.DeployItem) { di.Status.ProviderStatus = &runtime.RawExtension{} }), true},
		"phase":                     {newItem(withPhase(phInit)), false},
		"lastReconcileTime":         {newItem(withLastReconcileTime(0)), false},
		"provider status":           {newItem(func(di *lsv1alpha1.DeployItem) { di.Status.ProviderStatus = raw("{}") }), false},
		"export":                    {newItem(func(di *lsv1alpha1.DeployItem) { di.Status.ExportReference = &lsv1alpha1.ObjectReference{} }), false},
		"failed item that was never deployed [H-6]": {newStartedItem(phFailed, deployed("False")), true},
		"failed item that was deployed":             {newStartedItem(phFailed, deployed("True")), false},
		"failed item without the condition":         {newStartedItem(phFailed), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := contract.WasNeverDeployed(tc.di); got != tc.want {
				t.Errorf("NeverDeployed() = %t", got)
			}
		})
	}
}
