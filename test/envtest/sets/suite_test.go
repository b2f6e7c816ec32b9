// SPDX-License-Identifier: Apache-2.0

// Package sets_test deploys sets of manifests that have the shape of well-known ones, with the manifest deployer. The
// API server and the controllers of kube-controller-manager are real. Small controllers of the test stand in for the
// kubelet, for the programs in the sets, and for the programs that create certificates, volumes and load balancers.
package sets_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	cp       *controlplane.ControlPlane
	webhooks *webhookServer
)

func TestSets(t *testing.T) {
	world.Run(t, "manifest sets")
}

// listControllers contains the controllers of kube-controller-manager that change objects of the sets.
func listControllers() []string {
	return append(controlplane.DefaultControllers(),
		"clusterrole-aggregation-controller", "disruption-controller", "persistentvolume-binder-controller",
		"persistentvolume-protection-controller", "persistentvolumeclaim-protection-controller",
		"serviceaccount-token-controller", "ttl-after-finished-controller",
	)
}

var _ = BeforeSuite(func(ctx SpecContext) {
	assets, err := controlplane.FindAssets(ctx, controlplane.AssetsOptions{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	cp = world.StartControlPlane(ctx, controlplane.Options{Assets: assets})
	Expect(cp.StartControllerManager(ctx, listControllers()...)).To(Succeed())
	DeferCleanup(cp.StopControllerManager)
	webhooks = startWebhookServer()
	DeferCleanup(webhooks.Close)
	startStandIns(ctx)
})
