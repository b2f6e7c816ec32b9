// SPDX-License-Identifier: Apache-2.0

// Package apply_test proves package apply on a real API server, counting every request.
package apply_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

func TestApply(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	RunSpecs(t, "apply")
}

var (
	cfg    *rest.Config
	direct client.Client // not counted
)

var _ = BeforeSuite(func(ctx SpecContext) {
	cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return cp.Stop() })
	cfg = cp.Config
	direct = newClient(cfg)
})

func newClient(cfg *rest.Config) client.Client {
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	out, err := client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return out
}
