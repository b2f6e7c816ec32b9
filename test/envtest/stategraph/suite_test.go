// SPDX-License-Identifier: Apache-2.0

// Package stategraph_test runs state graphs against a real API server with kube-controller-manager. The API server is
// both the Landscaper cluster and the target.
package stategraph_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestStateGraph(t *testing.T) {
	world.Run(t, "state graphs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	cp = world.StartControlPlane(ctx, controlplane.Options{
		ControllerManager: true, Controllers: append(controlplane.DefaultControllers(), "ttl-after-finished-controller"),
	})
	DeferCleanup(startKubelet(context.WithoutCancel(ctx)))
})
