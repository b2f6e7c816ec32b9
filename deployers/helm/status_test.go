// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deployerkit/deployerkit/apply"
	"github.com/deployerkit/deployerkit/deployers/helm/release"
	"github.com/deployerkit/deployerkit/managed/resources"
)

func TestStatusSize(t *testing.T) {
	t.Run("is limited to 64 KiB for everything that does not list objects [Ex35]", testStatusSize)
	t.Run("is limited by the number of former releases [Ex18] [Ex35]", testFormerLimit)
}

// testStatusSize stores the status of a release with 1000 objects, in which all other fields have their maximum size.
func testStatusSize(t *testing.T) {
	long := strings.Repeat("x", 253)
	last := ReleaseStatus{
		Name: long[:53], Namespace: long[:63], Revision: 1 << 30, Status: release.StatusPendingRollback, SecretUID: types.UID(long[:36]),
		FirstFailure: strings.Repeat("x", maxText), Chart: long, ChartVersion: long, inputs: inputs{long[:71], long[:24], long[:24]},
	}
	for range maxFormer {
		last.Former = append(last.Former, FormerRelease{Name: long[:53], Namespace: long[:63]})
	}
	for range maxTestResults {
		last.Tests = append(last.Tests, TestResult{Name: long, Phase: "Succeeded"})
	}
	raw, err := json.Marshal(last)
	if err != nil {
		t.Fatal(err)
	}
	status := &resources.Status{Fields: map[string]json.RawMessage{fieldRelease: raw}}
	for i := range 1000 {
		entry := apply.Entry{UID: types.UID(long[:36])}
		entry.APIVersion, entry.Kind, entry.Namespace, entry.Name = "v1", "ConfigMap", "default", fmt.Sprint("object-", i)
		status.Inventory.Entries = append(status.Inventory.Entries, entry)
	}
	di := &lsv1alpha1.DeployItem{}
	if err := statusFormat.Store(di, status); err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(di.Status.ProviderStatus.Raw, &fields); err != nil {
		t.Fatal(err)
	}
	size := 0
	for name, value := range fields {
		if name != "inventory" && name != "managedResources" {
			size += len(name) + len(value)
		}
	}
	if size > 64<<10 || size < len(raw) {
		t.Errorf("the fields of the provider status that do not list objects have %d bytes, want at most %d", size, 64<<10)
	}
	if len(fields["inventory"]) < 1000*40 {
		t.Errorf("the inventory has only %d bytes, although there are 1000 objects", len(fields["inventory"]))
	}
}

func testFormerLimit(t *testing.T) {
	r := &run{config: &Config{Name: "new", Namespace: "n"}, release: &ReleaseStatus{Name: "old", Namespace: "n", Revision: 1}}
	for i := range maxFormer - 1 {
		r.release.Former = append(r.release.Former, FormerRelease{Name: fmt.Sprint("former-", i), Namespace: "n"})
	}
	if err := r.checkFormer(); err != nil {
		t.Errorf("%d former releases: %v", maxFormer, err)
	}
	r.release.Former = append(r.release.Former, FormerRelease{Name: "one-more", Namespace: "n"})
	err := r.checkFormer()
	if err == nil || !strings.Contains(err.Error(), "spec.config.name: the item replaces more than 20 releases") {
		t.Errorf("%d former releases: the error is %v", maxFormer+1, err)
	}
}
