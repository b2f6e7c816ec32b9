// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/google/go-cmp/cmp"
)

func TestSchedule(t *testing.T) {
	for name, tc := range map[string]struct {
		config string
		found  bool
	}{
		"Every":      {v2 + "continuousReconcile: {every: 1h}", true},
		"Cron":       {v2 + "continuousReconcile: {cron: '@daily'}", true},
		"None":       {v2, false},
		"Empty":      {v2 + "continuousReconcile: {}", false},
		"Old":        {v1 + "continuousReconcile: {every: 1h}", false},
		"BadEvery":   {v2 + "continuousReconcile: {every: often}", false},
		"BadCron":    {v2 + "continuousReconcile: {cron: at noon}", false},
		"Both":       {v2 + "continuousReconcile: {every: 1h, cron: '@daily'}", false},
		"OtherKind":  {"apiVersion: v1\nkind: ProviderConfiguration\ncontinuousReconcile: {every: 1h}", false},
		"NotAnother": {v2 + "continuousReconcile: 7", false},
	} {
		t.Run(name, func(t *testing.T) {
			di := itemWith(t, tc.config)
			got, err := Schedule(di)
			if err != nil || (got != nil) != tc.found {
				t.Errorf("Schedule(...): got %v, %v", got, err)
			}
			if config, err := Decode(di, Options{}); err == nil {
				if diff := cmp.Diff(config.ContinuousReconcile, got); diff != "" {
					t.Errorf("Schedule(...): -Decode, +Schedule:\n%s", diff)
				}
			}
		})
	}
	if got, err := Schedule(&lsv1alpha1.DeployItem{}); got != nil || err != nil {
		t.Errorf("Schedule(item without configuration): got %v, %v", got, err)
	}
}
