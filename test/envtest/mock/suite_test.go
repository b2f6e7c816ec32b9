// SPDX-License-Identifier: Apache-2.0

// Package mock_test runs the mock deployer against a real API server.
package mock_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var (
	cp *controlplane.ControlPlane
	c  client.Client // reads live
)

func TestMock(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "mock deployer")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})
