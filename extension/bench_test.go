// SPDX-License-Identifier: Apache-2.0

package extension_test

import (
	"fmt"
	"testing"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	"github.com/go-logr/logr"

	"github.com/deployerkit/deployerkit/extension"
)

func newNoopHooks(n int, named bool) extension.ReconcileExtensionHooks {
	hooks := extension.ReconcileExtensionHooks{}
	for i := range n {
		hook := extension.ReconcileExtensionHook(doNothing)
		if named {
			hook = extension.WithName(fmt.Sprintf("hook-%d", i), hook)
		}
		hooks.RegisterHook(hook, extension.EndHook)
	}
	return hooks
}

// BenchmarkExecuteHooks measures ExecuteHooks with hooks that do nothing. The budget is 2 µs per hook and one
// allocation per call.
func BenchmarkExecuteHooks(b *testing.B) {
	for _, n := range []int{0, 1, 10} {
		for _, named := range []bool{false, true} {
			b.Run(fmt.Sprintf("hooks=%d/named=%t", n, named), func(b *testing.B) {
				hooks, di, target := newNoopHooks(n, named), &lsv1alpha1.DeployItem{}, &lsv1alpha1.Target{}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := hooks.ExecuteHooks(b.Context(), logr.Discard(), di, target, extension.EndHook); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
