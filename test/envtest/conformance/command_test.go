// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	lsv1alpha1 "github.com/gardener/landscaper/apis/core/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/conformance"
	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

// mockLine contains the flags of the mock deployer from docs/testing-your-deployer.md.
const mockLine = " --kubeconfig={kubeconfig} --leader-elect=false --metrics-bind-address=0 --health-probe-bind-address=0 --grace-period=5s"

// run runs `deployerkit conformance` and waits until the command exits.
func run(ctx SpecContext, args ...string) *gexec.Session {
	GinkgoHelper()
	command := exec.CommandContext(ctx, deployerkit, append([]string{"conformance"}, args...)...) //nolint:gosec // built here
	command.Dir = filepath.Join("..", "..", "..", "examples", "conformance")
	session, err := gexec.Start(command, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	Eventually(session).WithContext(ctx).WithTimeout(5 * time.Minute).Should(gexec.Exit())
	return session
}

var _ = Describe("deployerkit conformance", Ordered, ContinueOnFailure, func() {
	var kubeconfig string
	var c client.Client

	BeforeAll(func(ctx SpecContext) {
		cp := world.StartControlPlane(ctx, controlplane.Options{})
		c = world.NewClient(GinkgoTB(), cp.Config)
		var err error
		kubeconfig, err = cp.WriteKubeconfig("")
		Expect(err).NotTo(HaveOccurred())
	})

	It("checks a program on an existing cluster under the revision of this cluster, and leaves no objects", world.Slow, func(ctx SpecContext) {
		junit, log := filepath.Join(GinkgoT().TempDir(), "report.xml"), filepath.Join(GinkgoT().TempDir(), "deployer.log")
		session := run(ctx, "--command="+mockProgram+mockLine, "--kubeconfig="+kubeconfig, "--name=mock-deployer",
			"--item=item.yaml", "--invalid-item=invalid-item.yaml", "--slow-item=slow-item.yaml", "--finish-item=finish-item.yaml", "--target=target.yaml",
			"--except=job-id/interrupt=to be seen in the report", "--finish-within=1m", "--item-timeout=4s", "--junit="+junit, "--log-file="+log)
		Expect(session).To(gexec.Exit(0))
		// Four checks do not run: the check that --except excludes, the check that requires a Target that the deployer
		// rejects, and two checks that need a function that reports whether the objects of an item exist.
		const missing = 4
		jobs, annotations := countChecks(contract.RevisionJobID), countChecks(contract.RevisionAnnotation)
		count := fmt.Sprintf("%d passed, 0 failed, %d not applicable\n", jobs-missing, annotations+missing)
		table := string(session.Out.Contents())
		Expect(table).To(HavePrefix("Conformance of mock-deployer: " + count))
		Expect(table).To(MatchRegexp(`(?m)^  pass   *[0-9.]+s  resume  .*\[C14\]$`))
		Expect(table).To(ContainSubstring("exception: to be seen in the report"))
		Expect(table).To(ContainSubstring("the subject accepts all Targets"))
		Expect(table).To(ContainSubstring(fmt.Sprintf("annotation revision\n  n/a   all %d checks: the definitions in the cluster are those of the job-id revision\n", annotations)))
		Expect(table).To(HaveSuffix("\n" + count))
		Expect(strings.Count(string(session.Err.Contents()), "pass  ")).To(Equal(jobs-missing), "the command prints a line for each result")
		Expect(readSuites(junit)).To(Equal([]suite{{"mock-deployer.job-id", jobs, 0, missing}, {"mock-deployer.annotation", annotations, 0, annotations}}))
		Expect(os.ReadFile(log)).To(ContainSubstring("mock"), "what the deployer wrote")

		items := &lsv1alpha1.DeployItemList{}
		Expect(c.List(ctx, items)).To(Succeed())
		Expect(items.Items).To(BeEmpty())
		namespaces := &corev1.NamespaceList{}
		Expect(c.List(ctx, namespaces)).To(Succeed())
		for _, ns := range namespaces.Items {
			if ns.GenerateName != "" {
				Expect(ns.DeletionTimestamp).NotTo(BeNil(), ns.Name)
			}
		}
	})

	It("reports failed checks in its exit status, and runs only the selected checks", func(ctx SpecContext) {
		junit := filepath.Join(GinkgoT().TempDir(), "report.xml")
		session := run(ctx, "--command="+mockProgram+mockLine, "--kubeconfig="+kubeconfig, "--item=invalid-item.yaml",
			"--revision=job-id", "--only=succeeds,error-shape", "--junit="+junit)
		Expect(session).To(gexec.Exit(1))
		table := string(session.Out.Contents())
		Expect(table).To(HavePrefix("Conformance of landscaper.gardener.cloud/mock: 1 passed, 1 failed, 0 not applicable\n"))
		Expect(table).To(ContainSubstring(" ! a valid item ended as \"Failed\", lastError InvalidConfiguration: "))
		Expect(table).To(ContainSubstring("\n  FAIL  L34  job-id/succeeds\n"))
		Expect(string(session.Err.Contents())).NotTo(ContainSubstring("Error:"), "the report already contains the failures")
		Expect(readSuites(junit)).To(Equal([]suite{{"landscaper.gardener.cloud/mock.job-id", 2, 1, 0}}))
	})

	It("prints the last output of a deployer that ends", func(ctx SpecContext) {
		session := run(ctx, "--command=sh -c 'echo cannot read {kubeconfig}, $KUBECONFIG; exit 7'", "--kubeconfig="+kubeconfig, "--item=item.yaml")
		Expect(session).To(gexec.Exit(1))
		Expect(session.Out.Contents()).To(BeEmpty())
		Expect(string(session.Err.Contents())).To(ContainSubstring("last output of the deployer:\ncannot read " + kubeconfig + ", " + kubeconfig + "\n"))
		Expect(string(session.Err.Contents())).To(ContainSubstring("job-id revision: the deployer ended unexpectedly: exit status 7\n"))
	})

	It("has a separate exit status for wrong usage", func(ctx SpecContext) {
		Expect(run(ctx, "--command=true", "--item=missing.yaml")).To(gexec.Exit(2))
	})
})

// countChecks returns the number of checks for a revision.
func countChecks(revision contract.Revision) int {
	n := 0
	for _, c := range conformance.AllChecks() {
		if c.Revision == "" || c.Revision == revision {
			n++
		}
	}
	return n
}

// suite is a test suite in a JUnit file.
type suite struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Skipped  int    `xml:"skipped,attr"`
}

// readSuites returns the test suites in a JUnit file.
func readSuites(path string) []suite {
	GinkgoHelper()
	raw, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	var report struct {
		Suites []suite `xml:"testsuite"`
	}
	Expect(xml.Unmarshal(raw, &report)).To(Succeed())
	return report.Suites
}
