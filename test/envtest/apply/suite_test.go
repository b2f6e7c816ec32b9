// SPDX-License-Identifier: Apache-2.0

// Package apply_test tests package apply with a real API server and counts every request.
package apply_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

func TestApply(t *testing.T) {
	world.Run(t, "apply")
}

var (
	cfg    *rest.Config
	direct client.Client // a client whose requests are not counted
)

var _ = BeforeSuite(func(ctx SpecContext) {
	cp := world.StartControlPlane(ctx, controlplane.Options{})
	cfg = cp.Config
	direct = newClient(cfg)
})

func newClient(cfg *rest.Config) client.Client { return world.NewClient(GinkgoTB(), cfg) }
