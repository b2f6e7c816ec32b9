// SPDX-License-Identifier: Apache-2.0

// Package programs_test runs the programs of cmd against real API servers.
package programs_test

import (
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

var (
	cp         *controlplane.ControlPlane
	c          client.Client // client that reads from the API server
	kubeconfig string        // kubeconfig for cp

	program         string // path of mock-deployer
	manifestProgram string // path of manifest-deployer
)

// TestMain runs the tests, or a deployer in the processes that the spec about shards starts.
func TestMain(m *testing.M) {
	if os.Getenv(recordsVariable) != "" {
		os.Exit(runLockingDeployer())
	}
	os.Exit(m.Run())
}

func TestPrograms(t *testing.T) {
	world.Run(t, "programs")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	program, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/mock-deployer", "-race")
	Expect(err).NotTo(HaveOccurred())
	manifestProgram, err = gexec.Build("github.com/deployerkit/deployerkit/cmd/manifest-deployer", "-race")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
	cp = world.StartControlPlane(ctx, controlplane.Options{})
	c = world.NewClient(GinkgoTB(), cp.Config)
	kubeconfig = fileOf(cp)
})

func fileOf(cp *controlplane.ControlPlane) string {
	GinkgoHelper()
	path, err := cp.WriteKubeconfig("")
	Expect(err).NotTo(HaveOccurred())
	return path
}
