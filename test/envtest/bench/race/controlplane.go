// SPDX-License-Identifier: Apache-2.0

package race

import (
	"os"
	"testing"

	"github.com/deployerkit/deployerkit/controlplane"
)

// StartControlPlane starts a control plane for a benchmark, and stops it at the end of the benchmark. Its API server
// rarely collects garbage. With the default, a collection starts about every 1.3 seconds, lasts about half a second,
// and makes the contender that runs at that time twice as slow.
func StartControlPlane(b *testing.B) *controlplane.ControlPlane {
	b.Helper()
	before := os.Getenv("GOGC")
	b.Setenv("GOGC", "1000")
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("GOGC", before) // for the programs that a contender starts
	b.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			b.Error(err)
		}
	})
	return cp
}
