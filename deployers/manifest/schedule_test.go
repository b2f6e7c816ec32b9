// SPDX-License-Identifier: Apache-2.0

package manifest

import "testing"

func TestGetSchedule(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		found  bool
	}{
		"Every":      {v2 + "continuousReconcile: {every: 1h}", true},
		"None":       {v2, false},
		"Old":        {v1 + "continuousReconcile: {every: 1h}", false},
		"OtherKind":  {"apiVersion: v1\nkind: ProviderConfiguration\ncontinuousReconcile: {every: 1h}", false},
		"NotAnother": {v2 + "continuousReconcile: 7", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := getSchedule(newItem(t, tc.config)); err != nil || (got != nil) != tc.found {
				t.Errorf("Schedule(...): got %v, %v", got, err)
			}
		})
	}
}
