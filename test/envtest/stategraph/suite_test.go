// SPDX-License-Identifier: Apache-2.0

// Package stategraph_test runs state graphs against a real API server with kube-controller-manager. It is Landscaper's
// cluster and the target in one.
package stategraph_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
)

var cp *controlplane.ControlPlane

func TestStateGraph(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "state graphs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	assets, err := controlplane.Assets(ctx, controlplane.AssetsOptions{ControllerManager: true, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	cp, err = controlplane.Start(ctx, controlplane.Options{Assets: assets, Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	Expect(cp.StartControllerManager(ctx)).To(Succeed())
	DeferCleanup(startKubelet(context.WithoutCancel(ctx)))
})
