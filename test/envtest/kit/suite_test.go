// SPDX-License-Identifier: Apache-2.0

// Package kit_test tests the test kit with a real API server.
package kit_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestKit(t *testing.T) {
	world.Run(t, "test kit")
}

// start starts an API server with the given custom resource definitions.
func start(ctx SpecContext, crds []*apiextv1.CustomResourceDefinition) (*controlplane.ControlPlane, client.Client) {
	cp := world.StartControlPlane(ctx, controlplane.Options{CRDs: crds})
	return cp, world.NewClient(GinkgoTB(), cp.Config)
}
