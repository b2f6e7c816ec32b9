// SPDX-License-Identifier: Apache-2.0

// Package mock_test runs the mock deployer against a real API server.
package mock_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	cp *controlplane.ControlPlane
	c  client.Client // client that reads from the API server
)

func TestMock(t *testing.T) {
	world.Run(t, "mock deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{})
	c = world.NewClient(GinkgoTB(), cp.Config)
})
