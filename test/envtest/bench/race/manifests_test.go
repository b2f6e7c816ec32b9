// SPDX-License-Identifier: Apache-2.0

package race_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

// rounds is the number of rounds. The median round of each contender counts. A ratio is the median of the ratios within
// each round.
const rounds = 9

// BenchmarkManifests deploys 20 items of 50 ConfigMaps with five contenders: the whole manifest deployer, the engine of
// the manifest deployer (package apply), a bare loop that sends the same patches as the engine, and a bare deployer
// with and without a watch of the objects. Package peers compares the engine with other tools.
func BenchmarkManifests(b *testing.B) {
	cp := race.StartControlPlane(b)
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	bare, watching, ours := race.NewBareDeployer(), race.NewWatchingDeployer(), race.NewDeployer()
	for b.Loop() {
		result, err := race.Run(b.Context(), cp, rounds, race.NewBare(), race.NewEngine(), watching, bare, ours)
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("\n%s", result)
		result.Report(b)
		b.ReportMetric(result.Ratio(ours.Name, bare.Name, race.Install), "ratio")
		b.ReportMetric(result.Ratio(ours.Name, watching.Name, race.Install), "ratio-watching")
	}
}
