// SPDX-License-Identifier: Apache-2.0

// Package manifest_test runs the manifest deployer against a real API server, which is Landscaper's cluster and the
// target in one.
package manifest_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
)

var cp *controlplane.ControlPlane

func TestManifest(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "manifest deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	assets, err := controlplane.Assets(ctx, controlplane.AssetsOptions{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	cp, err = controlplane.Start(ctx, controlplane.Options{Assets: assets, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
})
