// SPDX-License-Identifier: Apache-2.0

// Package systematic_test lets each deployer of this repository live through the same story (install, update, drift, an
// interrupted job, deletion) again and again, and each time something else goes wrong in it: the process is killed right
// before or right after one of its writes, one of its reads gets an old answer, or one of its watches tells the past once
// more. Whatever it is, the invariants hold, at the end and in every stored version of everything on the way.
//
// The deployers run in the process of the test. A killed one is cut off from its API servers and from the registry of
// accounts, so that nothing it still does has any effect; its memory is not looked at again.
//
// Without further ado a fair sample of the points is tried. DEPLOYERKIT_SYSTEMATIC=all (make test-systematic) tries them
// all, DEPLOYERKIT_SYSTEMATIC=<number> another sample.
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
	c       client.WithWatch // reads live
	records *chronicle
)

func TestSystematic(t *testing.T) {
	world.Run(t, "systematic runs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{ // the Secrets of exports are the garbage collector's
		ControllerManager: true, Controllers: []string{"garbage-collector-controller"},
	})
	c = world.NewClient(GinkgoTB(), cp.Config)
	var err error
	records, err = newChronicle(ctx, c)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(records.stop)
})
