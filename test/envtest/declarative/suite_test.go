// SPDX-License-Identifier: Apache-2.0

// Package declarative_test runs declarative deployers against a real API server, which is both the Landscaper cluster
// and the target.
package declarative_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestDeclarative(t *testing.T) {
	world.Run(t, "declarative deployers")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{
		ControllerManager: true, Controllers: append(controlplane.DefaultControllers(), "ttl-after-finished-controller"),
	})
})
