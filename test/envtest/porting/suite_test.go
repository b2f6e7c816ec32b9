// SPDX-License-Identifier: Apache-2.0

// Package porting_test runs deployers that were written for Landscaper's own library against a real API server.
package porting_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestPorting(t *testing.T) {
	world.Run(t, "ported deployers")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
})

// newWorld creates a world whose Landscaper follows the given revision.
func newWorld(ctx SpecContext, revision contract.Revision) *world.World {
	GinkgoHelper()
	return world.New(ctx, GinkgoTB(), cp, world.Options{
		Name: "porting", Landscaper: landscapertest.LandscaperOptions{Revision: revision, DeployerType: revision == contract.RevisionJobID},
	})
}
