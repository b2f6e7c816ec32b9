// SPDX-License-Identifier: Apache-2.0

// Package conformance_test checks the deployers of this module against the contract, and tests the conformance suite.
package conformance_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deployerkit/deployerkit/conformance"
)

// mockProgram and deployerkit are the paths of programs that are built for the suite.
var mockProgram, deployerkit string

func TestConformance(t *testing.T) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(time.Minute)
	conformance.Run(t, newMockSubject(), manifestDeployer(), newDeclarativeSubject(), newStateGraphSubject())
}

var _ = BeforeSuite(func() {
	var err error
	programs := []string{"github.com/deployerkit/deployerkit/cmd/mock-deployer", "github.com/deployerkit/deployerkit/cmd/deployerkit"}
	Expect(readSources(programs...)).To(Succeed())
	mockProgram, err = gexec.Build(programs[0])
	Expect(err).NotTo(HaveOccurred())
	deployerkit, err = gexec.Build(programs[1])
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(gexec.CleanupBuildArtifacts)
})

// readSources looks at the files from which programs are built and at those that they read, so that Go's test cache
// knows these files. Otherwise, it would not run the suite again after a change of a package that only the programs
// import.
func readSources(programs ...string) error {
	const format = `{{if .Module}}{{if .Module.Main}}{{.Dir}}{{"\n"}}{{range .EmbedFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	out, err := exec.Command("go", append([]string{"list", "-deps", "-f", format}, programs...)...).Output() //nolint:gosec // constants
	if err != nil {
		return err
	}
	root := filepath.Join("..", "..", "..")
	for _, path := range append(strings.Fields(string(out)), filepath.Join(root, "go.mod"), filepath.Join(root, "examples", "conformance")) {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			continue
		}
		if _, err := os.ReadDir(path); err != nil { // the cache remembers the name, size and time of each file
			return err
		}
	}
	return nil
}
