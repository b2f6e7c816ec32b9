// SPDX-License-Identifier: Apache-2.0

// Package suite_test runs the deployers of this module, as processes, under the real Landscaper.
package suite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/faultnet"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/landscapertest/landscaper"
	"github.com/deployerkit/deployerkit/test/landscaper/scenario"
)

const (
	module = "github.com/deployerkit/deployerkit/"
	// patience is the time limit of all waits. Another replica can take over the lease within this time even on a
	// loaded machine.
	patience = time.Minute
	// pickup is Landscaper's pickup timeout. It is long, because on a busy machine it takes many seconds to start a
	// deployer or to take over the lease of a killed deployer.
	pickup = 30 * time.Second
)

var (
	cp       *controlplane.ControlPlane
	c        client.Client // client that reads from the API server
	ls       *landscaper.Landscaper
	runner   *scenario.Runner
	access   string                // path of the kubeconfig of the deployers
	programs = map[string]string{} // paths of the programs by package
)

func TestLandscaper(t *testing.T) {
	RegisterFailHandler(Fail)
	ctrl.SetLogger(GinkgoLogr)
	RunSpecs(t, "the real Landscaper")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, p := range []string{"cmd/mock-deployer", "cmd/manifest-deployer", "examples/galera/galera-deployer", "examples/readme-deployer"} {
		path, err := gexec.Build(module+p, "-race")
		Expect(err).NotTo(HaveOccurred())
		programs[p] = path
	}
	DeferCleanup(gexec.CleanupBuildArtifacts)
	dir := GinkgoT().TempDir()
	audit, apiServerFlags, err := scenario.NewAudit(dir)
	Expect(err).NotTo(HaveOccurred())
	cp, err = controlplane.Start(ctx, controlplane.Options{
		ControllerManager: true, Controllers: append(controlplane.DefaultControllers(), "serviceaccount-token-controller"),
		APIServerFlags: apiServerFlags, Progress: GinkgoWriter,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(cp.Stop)
	scheme, err := landscapertest.Scheme()
	Expect(err).NotTo(HaveOccurred())
	c, err = client.New(cp.Config, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	runner = &scenario.Runner{ControlPlane: cp, Audit: audit, Deployer: "deployers"}
	config, err := runner.CreateUser()
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := faultnet.EncodeKubeconfig(config)
	Expect(err).NotTo(HaveOccurred())
	access = filepath.Join(dir, "deployers.kubeconfig")
	Expect(os.WriteFile(access, kubeconfig, 0o600)).To(Succeed())
	ls = landscaper.StartLandscaper(GinkgoTB(), cp, landscaper.Options{PickupTimeout: pickup, Progress: GinkgoWriter, Logs: logFile(dir, "landscaper.log")})
	startKubelet(ctx)
	DeferCleanup(killDeployers)
	for _, name := range []string{"mock", "manifest", "galera", "redis", "password"} {
		start(name, name)
	}
})

// logFile returns the file for the output of a process.
func logFile(dir, name string) *os.File {
	GinkgoHelper()
	f, err := os.Create(filepath.Join(dir, name)) //nolint:gosec // in a temporary directory
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(f.Close)
	return f
}

// startKubelet makes Pods ready at the times that the scenarios define.
func startKubelet(ctx context.Context) {
	GinkgoHelper()
	mgr, err := ctrl.NewManager(cp.Config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	Expect(err).NotTo(HaveOccurred())
	Expect(controlplane.AddKubelet(mgr, scenario.IsReady)).To(Succeed())
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	DeferCleanup(func() error { cancel(); return <-done })
}
