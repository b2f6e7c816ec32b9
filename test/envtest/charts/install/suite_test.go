// SPDX-License-Identifier: Apache-2.0

// Package install_test installs the charts with Helm on a control plane. The control plane runs no Pods. Instead, the
// specs start the programs as a kubelet would: with the arguments, the files and the ServiceAccount of the Pod.
package install_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// auditPolicy logs the user, verb and resource of each request, but no content of requests or responses.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
"rules": [{"level": "Metadata", "userGroups": ["system:serviceaccounts"]}, {"level": "None"}]}`

var (
	cp       *controlplane.ControlPlane
	c        client.Client // client that reads from the API server
	auditLog string        // path of the audit log
	programs = map[string]string{}
)

func TestInstall(t *testing.T) { world.Run(t, "charts") }

// buildHelmDeployer builds the program in the module deployers/helm, and returns its path.
func buildHelmDeployer(ctx context.Context) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "helm-deployer")
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/helm-deployer")
	build.Dir = filepath.Join(helm.Root(), "deployers", "helm")
	out, err := build.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	return path
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for _, name := range []string{"manifest-deployer", "mock-deployer"} {
		path, err := gexec.Build("github.com/deployerkit/deployerkit/cmd/" + name)
		Expect(err).NotTo(HaveOccurred())
		programs[name] = path
	}
	programs["helm-deployer"] = buildHelmDeployer(ctx)
	DeferCleanup(gexec.CleanupBuildArtifacts)
	dir := GinkgoT().TempDir()
	policy := filepath.Join(dir, "policy.json")
	auditLog = filepath.Join(dir, "audit.log")
	Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
	cp = world.StartControlPlane(ctx, controlplane.Options{APIServerFlags: map[string][]string{
		"audit-policy-file": {policy}, "audit-log-path": {auditLog},
	}})
	c = world.NewClient(GinkgoTB(), cp.Config)
})
