// SPDX-License-Identifier: Apache-2.0

//go:build !race

package extension_test

import (
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

// TestExecuteHooksAllocations does not run with the race detector, which adds its own allocations.
func TestExecuteHooksAllocations(t *testing.T) {
	for name, tc := range map[string]struct {
		hooks extension.ReconcileExtensionHooks
		most  float64
	}{
		"no hooks":        {hooks: newNoopHooks(0, false), most: 0},
		"nil map":         {hooks: nil, most: 0},
		"one hook":        {hooks: newNoopHooks(1, false), most: 1},
		"one named hook":  {hooks: newNoopHooks(1, true), most: 1},
		"ten hooks":       {hooks: newNoopHooks(10, false), most: 1},
		"ten named hooks": {hooks: newNoopHooks(10, true), most: 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, di, target := t.Context(), &lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}
			got := testing.AllocsPerRun(100, func() {
				if _, err := tc.hooks.ExecuteHooks(ctx, logr.Discard(), di, target, extension.EndHook); err != nil {
					t.Error(err)
				}
			})
			if got > tc.most {
				t.Errorf("got %v allocations, want at most %v", got, tc.most)
			}
		})
	}
}
