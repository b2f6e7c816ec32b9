// SPDX-License-Identifier: Apache-2.0

package limits_test

import (
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/controlplane"
)

var cp *controlplane.ControlPlane

func TestLimits(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(logr.Discard()) // a mebibyte in a log helps nobody
	klog.SetLogger(logr.Discard())
	RunSpecs(t, "limits")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	cp, err = controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
})
