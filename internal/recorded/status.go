// SPDX-License-Identifier: Apache-2.0

// Package recorded tests that deployers read the state that an earlier version of the library has stored.
package recorded

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deployerkit/deployerkit/apply"
)

// CheckStatus checks the provider status in testdata/recorded/status.json of the repository at root. The function
// `store` decodes the provider status of an item, stores it again, and returns its inventory. The status must be the
// same afterwards, and the inventory must be the one that package apply has recorded.
func CheckStatus(t *testing.T, root string, store func(*lsv1alpha1.DeployItem) (apply.Inventory, error)) {
	t.Helper()
	di := &lsv1alpha1.DeployItem{}
	di.Status.ProviderStatus = &runtime.RawExtension{Raw: readFile(t, "testdata/recorded/status.json")}
	before := decode[map[string]any](t, di.Status.ProviderStatus.Raw)
	inventory, err := store(di)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, decode[map[string]any](t, di.Status.ProviderStatus.Raw)); diff != "" {
		t.Errorf("stored again (-recorded +got):\n%s", diff)
	}
	want := decode[apply.Inventory](t, readFile(t, filepath.Join(root, "apply/testdata/recorded/inventory.json")))
	if diff := cmp.Diff(want, inventory); diff != "" {
		t.Errorf("inventory (-recorded +got):\n%s", diff)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func decode[T any](t *testing.T, raw []byte) (out T) {
	t.Helper()
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
