// SPDX-License-Identifier: Apache-2.0

// Package manifest_test runs the manifest deployer against a real API server, which is both the Landscaper cluster and
// the target.
package manifest_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var cp *controlplane.ControlPlane

func TestManifest(t *testing.T) {
	world.Run(t, "manifest deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	assets, err := controlplane.FindAssets(ctx, controlplane.AssetsOptions{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	cp = world.StartControlPlane(ctx, controlplane.Options{Assets: assets})
})
