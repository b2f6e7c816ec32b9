// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/deployerkit/deployerkit/test/envtest/charts/helm"
)

// byValue contains the flags that must not be set with the value extraArgs. Each entry contains the chart values that
// set the flag instead. The entry is empty if the chart always sets the flag.
var byValue = map[string]string{
	"config": "", "health-probe-bind-address": "", "metrics-bind-address": "", "grace-period": "", "leader-elect": "leaderElection: {enabled: false}",
	"shards": "deployer: {shards: 2}", "shard": "-", // each Pod derives its shard from its name
	"namespace": "deployer: {watchNamespace: x}", "landscaper-kubeconfig": "deployer: {landscaperClusterKubeconfig: {secretRef: x}}",
	"enable-oidc-targets": "deployer: {targets: {enableOIDC: true}}", "enable-self-targets": "deployer: {targets: {enableSelf: true}}",
	"landscaper-audiences": "deployer: {targets: {landscaperAudiences: [x]}}",
	// No value sets this flag: the flag always names the namespace of the release, which contains the Role for
	// leader election.
	"leader-election-namespace": "-",
}

var _ = Describe("Flags of the programs", func() {
	It("each flag is set by a value or by extraArgs, and the charts use no other flags [O38]", func(ctx SpecContext) {
		for _, name := range []string{"helm-deployer", "manifest-deployer", "mock-deployer"} {
			help, err := exec.CommandContext(ctx, programs[name], "--help").CombinedOutput() //nolint:gosec // built here
			Expect(err).NotTo(HaveOccurred())
			known := []string{}
			for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z0-9-]+)`).FindAllStringSubmatch(string(help), -1) {
				known = append(known, flag[1])
				_, err := helm.Render(helm.FindChart(name), "rel", "ls-system", fmt.Sprintf("extraArgs: [--%s=x]", flag[1]))
				values, isValue := byValue[flag[1]]
				if !isValue {
					Expect(err).NotTo(HaveOccurred(), flag[1])
					continue
				}
				Expect(err).To(MatchError(ContainSubstring("extraArgs")), flag[1])
				if values == "-" {
					continue
				}
				rendered, err := helm.Render(helm.FindChart(name), "rel", "ls-system", values)
				Expect(err).NotTo(HaveOccurred())
				Expect(rendered.Manifest).To(MatchRegexp(`- "?--`+flag[1]+`\b`), name)
			}
			Expect(len(known)).To(BeNumerically(">", 15))
			full, err := helm.Render(helm.FindChart(name), "rel", "ls-system", strings.ReplaceAll(full, "--target-share=0.5", "--workers=1"))
			Expect(err).NotTo(HaveOccurred())
			for _, flag := range regexp.MustCompile(`(?m)^ +- "?--([a-z0-9-]+)`).FindAllStringSubmatch(full.Manifest, -1) {
				Expect(known).To(ContainElement(flag[1]))
			}
		}
	})
})
