// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"fmt"
	"testing"

	"github.com/deployerkit/deployerkit/targets"
)

// BenchmarkPoolGet is what each pass over a deploy item pays for a target that is known already.
func BenchmarkPoolGet(b *testing.B) {
	api := startAPI("token")
	defer api.Close()
	pool := targets.NewPool(targets.PoolOptions{Policy: loose})
	defer pool.Close()
	target := resolved("a", kubeconfig(fmt.Sprintf("server: %q, certificate-authority-data: %s", api.URL, api.ca()), "token: token", ""))
	for b.Loop() {
		if _, err := pool.Get(b.Context(), target); err != nil {
			b.Fatal(err)
		}
	}
}
