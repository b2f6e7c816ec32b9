// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/internal/recorded"
)

func TestDecodeRecordedStatus(t *testing.T) {
	recorded.CheckStatus(t, "../..", func(di *lsv1alpha1.DeployItem) (apply.Inventory, error) {
		format := StatusFormat{Kind: schema.GroupVersionKind{Group: "manifest.deployer.landscaper.gardener.cloud", Version: "v1alpha2", Kind: "ProviderStatus"}}
		status, err := format.Decode(di)
		if err != nil {
			return apply.Inventory{}, err
		}
		di.Status.ProviderStatus = nil
		return status.Inventory, format.Store(di, status)
	})
}
