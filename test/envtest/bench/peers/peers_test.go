// SPDX-License-Identifier: Apache-2.0

package peers_test

import (
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/test/envtest/bench/race"
)

// rounds is the number of rounds. The median round of each contender counts.
const rounds = 3

// BenchmarkPeers deploys 20 items of 50 ConfigMaps to a cluster in four ways.
func BenchmarkPeers(b *testing.B) {
	cp := race.StartControlPlane(b)
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	for b.Loop() {
		result, err := race.Run(b.Context(), cp, rounds, race.NewBare(), race.NewEngine(), newFlux(), race.Kubectl())
		if err != nil {
			b.Fatal(err)
		}
		b.Logf("\n%s", result)
		result.Report(b)
	}
}
