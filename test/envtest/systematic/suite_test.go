// SPDX-License-Identifier: Apache-2.0

// Package systematic_test runs the same scenario (install, update, drift, an interrupted job, deletion) with each
// deployer of this repository many times. Each run has a different fault. For example, the process is killed right
// before or right after one of its writes, one of its reads gets an old response, or one of its watches repeats events.
// The invariants must hold at the end of each run, and for every stored version of every object.
//
// The deployers run in the process of the test. A killed deployer is disconnected from its API servers and from the
// registry of accounts, so that its later requests have no effect. Its memory is not used again.
//
// By default, only a sample of all possible faults is tried. DEPLOYERKIT_SYSTEMATIC=all (make test-systematic) tries
// all of them, and DEPLOYERKIT_SYSTEMATIC=<number> tries another sample.
package systematic_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	cp      *controlplane.ControlPlane
	c       client.WithWatch // client that reads from the API server
	records *objectHistory
)

func TestSystematic(t *testing.T) {
	world.Run(t, "systematic runs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	// The control plane runs the garbage collector, which deletes the Secrets of exports.
	cp = world.StartControlPlane(ctx, controlplane.Options{
		ControllerManager: true, Controllers: []string{"garbage-collector-controller"},
	})
	c = world.NewClient(GinkgoTB(), cp.Config)
	var err error
	records, err = newChronicle(ctx, c)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(records.stop)
})
