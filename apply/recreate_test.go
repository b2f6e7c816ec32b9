// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deployerkit/deployerkit/apply/ownership"
)

func TestStagesKeepTheOrder(t *testing.T) {
	desired := []Desired{manifest("ConfigMap", "z", nil), manifest("ConfigMap", "a", nil), manifest("ConfigMap", "m", nil)}
	t.Run("the objects of a stage keep the order of the call [Rx2]", func(t *testing.T) {
		objects, err := New(nil, newConfigMapMapper(), Options{}).begin(ownership.Owner{UID: "item"}, Inventory{}).prepare(t.Context(), desired, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, stage := range splitIntoStages(objects) {
			for _, o := range stage {
				got = append(got, o.ref.Name)
			}
		}
		if diff := cmp.Diff([]string{"z", "a", "m"}, got); diff != "" {
			t.Error(diff)
		}
	})
}
