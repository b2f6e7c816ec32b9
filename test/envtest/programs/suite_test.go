// SPDX-License-Identifier: Apache-2.0

// Package programs_test runs the programs of cmd against real API servers.
package programs_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
)

var (
	cp         *controlplane.ControlPlane
	c          client.Client // reads live
	kubeconfig string        // of cp

	program         string // mock-deployer
	manifestProgram string // manifest-deployer
)

func TestPrograms(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "programs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	program, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/mock-deployer", "-race")
	Expect(err).NotTo(HaveOccurred())
	manifestProgram, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/manifest-deployer", "-race")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
	cp = startControlPlane(ctx)
	c = clientOf(cp)
	kubeconfig = fileOf(cp)
})

func startControlPlane(ctx SpecContext) *controlplane.ControlPlane {
	GinkgoHelper()
	cp, err := controlplane.Start(ctx, controlplane.Options{Progress: GinkgoWriter})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	return cp
}

func clientOf(cp *controlplane.ControlPlane) client.Client {
	GinkgoHelper()
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err := client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	return c
}

func fileOf(cp *controlplane.ControlPlane) string {
	GinkgoHelper()
	path, err := cp.KubeconfigFile("")
	Expect(err).NotTo(HaveOccurred())
	return path
}
