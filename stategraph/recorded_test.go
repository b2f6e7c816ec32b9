// SPDX-License-Identifier: Apache-2.0

package stategraph

import (
	"encoding/json"
	"os"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

// TestRecordedStatus reads a provider status that an earlier version of the library has stored, with a value in each
// field of the inventory, and stores it again.
func TestRecordedStatus(t *testing.T) {
	read := func(path string) []byte {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	decode := func(raw []byte) (out map[string]any) {
		if err := json.Unmarshal(raw, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	recorded := read("testdata/recorded/status.json")
	di := &lsv1alpha1.DeployItem{}
	di.Status.ProviderStatus = &runtime.RawExtension{Raw: recorded}
	status, err := decodeStatus(di)
	if err != nil {
		t.Fatal(err)
	}
	if err := status.store(di); err != nil {
		t.Fatal(err)
	}
	inventory := status.Inventory
	if diff := cmp.Diff(decode(recorded), decode(di.Status.ProviderStatus.Raw)); diff != "" {
		t.Errorf("stored again (-recorded +got):\n%s", diff)
	}
	var want apply.Inventory
	if err := json.Unmarshal(read("../apply/testdata/recorded/inventory.json"), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, inventory); diff != "" {
		t.Errorf("inventory (-recorded +got):\n%s", diff)
	}
}
