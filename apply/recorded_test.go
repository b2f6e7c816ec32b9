// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDecodeRecordedInventory reads an inventory that an earlier version of the library has stored, with a value in
// each field. Add a new file when the format gets new fields, and keep the old ones.
func TestDecodeRecordedInventory(t *testing.T) {
	raw, err := os.ReadFile("testdata/recorded/inventory.json")
	if err != nil {
		t.Fatal(err)
	}
	var inv Inventory
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&inv); err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(inv, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(raw), string(again)+"\n"); diff != "" {
		t.Errorf("stored again (-recorded +got):\n%s", diff)
	}
	entry := reflect.ValueOf(inv.Entries[0])
	for i := range entry.NumField() {
		if entry.Field(i).IsZero() {
			t.Errorf("the recorded entry has no value of the field %s", entry.Type().Field(i).Name)
		}
	}
}
