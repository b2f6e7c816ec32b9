// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"testing"

	"github.com/deployerkit/deployerkit/targets"
)

// BenchmarkPoolGet measures Pool.Get, which each reconcile of a deploy item calls.
func BenchmarkPoolGet(b *testing.B) {
	api := startAPI("token")
	defer api.Close()
	pool := targets.NewPool(targets.PoolOptions{Policy: loosePolicy})
	defer pool.Close()
	target := newResolvedTarget("a", newKubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.getCA()), "token: token", ""))
	for b.Loop() {
		if _, err := pool.Get(b.Context(), target); err != nil {
			b.Fatal(err)
		}
	}
}
