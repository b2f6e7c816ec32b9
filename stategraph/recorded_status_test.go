// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/internal/recorded"
)

func TestRecordedStatus(t *testing.T) {
	recorded.CheckStatus(t, "..", func(di *lsv1alpha1.DeployItem) (apply.Inventory, error) {
		status, err := decodeStatus(di)
		if err != nil {
			return apply.Inventory{}, err
		}
		di.Status.ProviderStatus = nil
		return status.Inventory, status.store(di)
	})
}
