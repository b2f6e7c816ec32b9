// SPDX-License-Identifier: Apache-2.0

// Package managed_test runs a small deployer that uses package managed against a real API server, which is both the
// Landscaper cluster and the target.
package managed_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestUpkeep(t *testing.T) {
	world.Run(t, "managed")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
})
