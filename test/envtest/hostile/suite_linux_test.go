// SPDX-License-Identifier: Apache-2.0

// Package hostile_test runs the program of the manifest deployer with hostile API servers.
package hostile_test

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deployerkit/deployerkit/contract"
	"github.com/deployerkit/deployerkit/controlplane"
	"github.com/deployerkit/deployerkit/landscapertest"
	"github.com/deployerkit/deployerkit/test/envtest/internal/world"
)

const patience = 3 * time.Minute

var (
	cp         *controlplane.ControlPlane
	kubeconfig string // path of the kubeconfig file
	c          client.WithWatch
	ls         *landscapertest.Landscaper

	manifestDeployer, mockDeployer string // paths of the programs

	figures []figure
)

// figure is a row of the table that the suite prints.
type figure struct{ what, required, measured string }

// addFigure adds a row to the table.
func addFigure(what, required, measured string, args ...any) {
	figures = append(figures, figure{what, required, fmt.Sprintf(measured, args...)})
}

func TestHostile(t *testing.T) {
	world.Run(t, "hostile targets")
}

var _ = BeforeSuite(func(ctx SpecContext) {
	for name, program := range map[string]*string{"manifest-deployer": &manifestDeployer, "mock-deployer": &mockDeployer} {
		path, err := gexec.Build("github.com/deployerkit/deployerkit/cmd/" + name)
		Expect(err).NotTo(HaveOccurred())
		*program = path
	}
	DeferCleanup(gexec.CleanupBuildArtifacts)
	cp = world.StartControlPlane(ctx, controlplane.Options{})
	config := rest.CopyConfig(cp.Config)
	config.WarningHandler = rest.NoWarnings{} // This handler hides the warnings about finalizers.
	c = world.NewClient(GinkgoTB(), config)
	var err error
	kubeconfig, err = cp.WriteKubeconfig("")
	Expect(err).NotTo(HaveOccurred())
	ls = landscapertest.NewLandscaper(c, landscapertest.LandscaperOptions{Revision: contract.RevisionJobID, DeployerType: true})
})

var _ = ReportAfterSuite("figures", func(Report) {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, err := fmt.Fprintln(table, "\n\trequired\tmeasured")
	for _, f := range figures {
		if err == nil {
			_, err = fmt.Fprintf(table, "%s\t%s\t%s\n", f.what, f.required, f.measured)
		}
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(table.Flush()).To(Succeed())
	fmt.Println(out.String())
})
