// SPDX-License-Identifier: Apache-2.0

package race_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

// rounds: the best of so many counts.
const rounds = 3

// BenchmarkManifests brings 20 items of 50 ConfigMaps to a cluster through the whole manifest deployer, next to the
// engine in it, and to a bare loop of the same patches. Other tools are in the module peers.
func BenchmarkManifests(b *testing.B) {
	cp, err := controlplane.Start(b.Context(), controlplane.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := cp.Stop(); err != nil {
			b.Error(err)
		}
	})
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	bare, ours := race.Bare(), race.Deployer()
	for b.Loop() {
		result, err := race.Run(b.Context(), cp, rounds, bare, race.Engine(), ours)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("\n%s", result)
		b.ReportMetric(result.PerSecond(ours.Name, race.Install), "objects/s")
		b.ReportMetric(result.Ratio(ours.Name, bare.Name, race.Install), "ratio")
		b.ReportMetric(result.Calls(ours.Name, race.Install), "calls/object")
	}
}
